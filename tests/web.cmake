# Tests of the build for WebAssembly, under node (included by CMakeLists.txt).

# Tests of the core that cannot pass there, and why; the others must.
set(not_under_node "")

xgrad_for_node(xgrad_core_tests)
target_link_options(xgrad_core_tests PRIVATE -O0)  # the optimiser would take minutes for the tests' code
list(TRANSFORM not_under_node PREPEND "~")
add_test(NAME core_tests COMMAND xgrad_core_tests ${not_under_node})
set_tests_properties(core_tests PROPERTIES ${xgrad_some_test})

# The first 50 losses of the demonstration, which is as large as `nano`, are PyTorch's to 1e-5.
add_test(NAME demonstration_losses
         COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/examples/char_transformer.py losses ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:char_transformer>)
