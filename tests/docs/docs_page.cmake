# Makes a test of a page of the documentation: every row of its tables becomes code that runs.
#
#   cmake -DPAGE=docs/pytorch.md -DNAME=docs/pytorch.md -DOUTPUT=page.cpp -P docs_page.cmake
#
# It takes from the page:
#   ```cpp blocks   go before all rows; one that begins with "// in each row" gives each row its names (it must be
#                   declarations, which become members of a struct)
#   ## A heading    begins a test case
#   | a | b | why | a row: two cells of code, in which a line is a `code span` and lines are separated by <br>, and
#                   one of prose.  The second cell is run.  `x.sum()  // 10` checks what is printed, `x + d  // throws
#                   DTypeError` the error; a | within code is written \|.
# Anything else that looks like a table is an error, which names the page and the line.

cmake_minimum_required(VERSION 3.22)

set(includes "")
set(file_scope "")
set(members "")
set(rows "")
set(cases "")
set(state prose)  # prose, header (a table's first line has been read), table, cpp (a block), other (a block)
set(number 0)
set(count 0)
string(ASCII 1 bar)

function(refuse why)
  message(FATAL_ERROR "${NAME}:${number}: ${why}")
endfunction()

# Turns a cell into lines of C++ that check its statements, or only checks that it is code.
function(read_code cell what result)
  set(code "")
  while(NOT cell STREQUAL "")
    if(NOT cell MATCHES "^`([^`]+)`(<br>`.*)?$")
      refuse("the cell '${what}' is not `code`, or `code`<br>`code`")
    endif()
    set(line "${CMAKE_MATCH_1}")
    string(REGEX REPLACE "^<br>" "" cell "${CMAKE_MATCH_2}")
    string(REPLACE "${bar}" "|" line "${line}")
    string(APPEND code "#line ${number} \"${PAGE}\"\n")
    if(line MATCHES "^(.*[^ ;]);?  // throws ([A-Za-z]+)$")
      string(APPEND code "    page::throws<${CMAKE_MATCH_2}>(R\"page(${line})page\", [&] { ${CMAKE_MATCH_1}; });\n")
    elseif(line MATCHES "^(.*[^ ;]);?  // (.+)$")
      string(APPEND code "    page::shows(R\"page(${line})page\", R\"page(${CMAKE_MATCH_2})page\", "
                         "[&] { return ${CMAKE_MATCH_1}; });\n")
    elseif(line MATCHES "//")
      refuse("in '${line}' two spaces, // and a space must stand before what is expected")
    else()
      string(REGEX REPLACE ";$" "" line "${line}")
      string(APPEND code "    ${line};\n")
    endif()
  endwhile()
  set(${result} "${code}" PARENT_SCOPE)
endfunction()

file(READ "${PAGE}" rest)
while(NOT rest STREQUAL "")
  string(FIND "${rest}" "\n" end)
  if(end EQUAL -1)
    string(APPEND rest "\n")
    continue()
  endif()
  string(SUBSTRING "${rest}" 0 ${end} line)
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${rest}" ${end} -1 rest)
  math(EXPR number "${number} + 1")

  if(line MATCHES "^```")
    if(state STREQUAL "cpp" OR state STREQUAL "other")
      set(state prose)
    elseif(line STREQUAL "```cpp")
      set(state cpp)
      set(target file_scope)
      math(EXPR next "${number} + 1")
      if(rest MATCHES "^// in each row")
        set(target members)
      endif()
      string(APPEND ${target} "#line ${next} \"${PAGE}\"\n")
    else()
      set(state other)
    endif()
  elseif(state STREQUAL "cpp")
    if(line MATCHES "^#include ")
      string(APPEND includes "${line}\n")
      string(APPEND ${target} "\n")  # the lines keep their numbers
    else()
      string(APPEND ${target} "${line}\n")
    endif()
  elseif(state STREQUAL "other")
    # not ours
  elseif(line MATCHES "^ *[|]")
    if(state STREQUAL "prose")
      if(NOT line STREQUAL "| PyTorch | xgrad | difference, and why |")
        refuse("a table begins with | PyTorch | xgrad | difference, and why |")
      endif()
      set(state header)
      continue()
    elseif(state STREQUAL "header")
      if(NOT line STREQUAL "| --- | --- | --- |")
        refuse("the second line of a table is | --- | --- | --- |")
      endif()
      set(state table)
      continue()
    endif()
    string(REPLACE "\\|" "${bar}" line "${line}")
    if(NOT line MATCHES "^[|]([^|]*)[|]([^|]*)[|]([^|]*)[|]$")
      refuse("a row is | PyTorch | xgrad | difference |: three cells (a | within code is written \\|)")
    endif()
    string(STRIP "${CMAKE_MATCH_1}" theirs)
    string(STRIP "${CMAKE_MATCH_2}" ours)
    string(STRIP "${CMAKE_MATCH_3}" why)
    if(theirs STREQUAL "" OR ours STREQUAL "" OR why STREQUAL "")
      refuse("a cell is empty")
    endif()
    if(NOT DEFINED heading)
      refuse("a row before the first ## heading")
    endif()
    read_code("${theirs}" PyTorch ignored)
    read_code("${ours}" xgrad code)
    string(APPEND rows "struct Row${number} : Names {\n  void run() {\n${code}  }\n};\n")
    string(APPEND cases "#line ${number} \"${PAGE}\"\n  page::run<Row${number}>(\"${NAME}:${number}\");\n")
    math(EXPR count "${count} + 1")
  else()
    set(state prose)
    if(line MATCHES "^## (.*)$")
      set(heading "${CMAKE_MATCH_1}")
      string(APPEND cases "}\n#line ${number} \"${PAGE}\"\nTEST_CASE(\"${NAME} - ${heading}\", \"[docs]\") {\n")
    endif()
  endif()
endwhile()

if(count EQUAL 0)
  message(FATAL_ERROR "${NAME}: it has no rows")
endif()

string(REGEX REPLACE "^}\n" "" cases "${cases}")
file(WRITE "${OUTPUT}" "// Made from ${NAME} by docs_page.cmake: see there.

#include \"docs/docs_page.hpp\"

${includes}
namespace {
${file_scope}
struct Names : page::Row {
${members}};
${rows}
${cases}}
}  // namespace
")
