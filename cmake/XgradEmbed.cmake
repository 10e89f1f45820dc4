# Turns styles and scripts of pages into C++ strings: cmake "-DFILES=a/page.css;a/page.js" -DOUTPUT=assets.cpp -P XgradEmbed.cmake
# The file page.css becomes xgrad::viz::detail::page_css (viz/assets.hpp declares it).
set(text "#include <xgrad/viz/assets.hpp>\n\nnamespace xgrad::viz::detail {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME)
  string(REPLACE . _ name "${name}")
  file(READ "${file}" content)
  string(APPEND text "const std::string_view ${name} = R\"~~~(${content})~~~\";\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}}  // namespace xgrad::viz::detail\n")
