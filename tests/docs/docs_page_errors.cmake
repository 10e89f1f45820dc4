# Pages that docs_page.cmake must reject, and its message for each.

cmake_minimum_required(VERSION 3.22)
file(MAKE_DIRECTORY "${WORK}")

set(table "Prose\n## Heading\n| PyTorch | xgrad | difference, and why |\n| --- | --- | --- |\n")

# run(<page> <message>): with an empty message the page is accepted.
function(run page message)
  file(WRITE "${WORK}/page.md" "${page}")
  execute_process(COMMAND ${CMAKE_COMMAND} -DPAGE=${WORK}/page.md -DNAME=page.md -DOUTPUT=${WORK}/page.cpp
                          -P ${CMAKE_CURRENT_LIST_DIR}/docs_page.cmake
                  RESULT_VARIABLE code ERROR_VARIABLE error)
  string(REGEX REPLACE "[ \n]+" " " error "${error}")
  string(FIND "${error}" "${message}" at)
  if(at EQUAL -1 OR (message STREQUAL "" AND NOT code EQUAL 0) OR (NOT message STREQUAL "" AND code EQUAL 0))
    message(SEND_ERROR "this page:\n${page}\nshould give '${message}' and gives ${code}, '${error}'")
  endif()
endfunction()

run("${table}| `a` | `f(1, \"\\|\");`<br>`b;  // [1;2`  | same |\n" "")
file(READ "${WORK}/page.cpp" made)
foreach(part IN ITEMS "#line 5 \"${WORK}/page.md\"\n    f(1, \"|\");\n" "R\"page([1;2)page\", [&] { return b; });"
                      "TEST_CASE(\"page.md - Heading\", \"[docs]\")" "page::run<Row5>(\"page.md:5\");")
  string(FIND "${made}" "${part}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "'${part}' is missing in\n${made}")
  endif()
endforeach()

run("${table}| `a` | `b` |\n" "page.md:5: a row is | PyTorch | xgrad | difference |: three cells")
run("${table}| `a` | `b | c` | same |\n" "page.md:5: a row is")
run("${table}| `a` | `b` | same\n" "page.md:5: a row is")
run("${table}| `a` |  | same |\n" "page.md:5: a cell is empty")
run("${table}| `a` | `b` | |\n" "page.md:5: a cell is empty")
run("${table}| `a` | b | same |\n" "page.md:5: the cell 'xgrad' is not `code`")
run("${table}| a | `b` | same |\n" "page.md:5: the cell 'PyTorch' is not `code`")
run("${table}| `a` | `b` `c` | same |\n" "page.md:5: the cell 'xgrad' is not `code`")
run("${table}| `a` | `b // 1` | same |\n" "page.md:5: in 'b // 1' two spaces, // and a space")
run("${table}" "page.md: it has no rows")
run("Prose\n## H\n| `a` | `b` | same |\n" "page.md:3: a table begins with")
run("Prose\n## H\n| PyTorch | xgrad | difference, and why |\n| `a` | `b` | same |\n" "page.md:4: the second line")
run("Prose\n| PyTorch | xgrad | difference, and why |\n| --- | --- | --- |\n| `a` | `b` | same |\n"
    "page.md:4: a row before the first")
