# plot_losses draws runs, given by folder or file, and says what is wrong with one.
file(REMOVE_RECURSE "${WORK}")
file(WRITE "${WORK}/a/metrics.jsonl" "{\"step\": 0, \"loss\": 2.5}\n{\"step\": 1, \"loss\": 2, \"val_loss\": 2.25}\n")
file(WRITE "${WORK}/b/metrics.jsonl" "{\"step\": 0, \"loss\": 2.4}\n{\"step\": 1, \"loss\": 1e9}\n")
file(WRITE "${WORK}/c/metrics.jsonl" "{\"step\": 0, \"loss\": 2.4}\n{\"step\": 1}\n")
file(COPY "${WORK}/a" DESTINATION "${WORK}/other")

# Runs it with arguments; expects that code, and printed lines that match.
function(plot code pattern)
  execute_process(COMMAND "${PROGRAM}" ${ARGN} WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE result
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL code OR NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "plot_losses ${ARGN}: exit code ${result}, expected ${code} and \"${pattern}\":\n${output}")
  endif()
endfunction()
# The picture has all the texts.
function(shows file)
  file(READ "${WORK}/${file}" svg)
  foreach(text IN LISTS ARGN)
    if(NOT svg MATCHES ">${text}</text>")
      message(FATAL_ERROR "${file} does not show \"${text}\"")
    endif()
  endforeach()
endfunction()

plot(0 "^losses.svg: 1 run\n$" a)
shows(losses.svg a "a, validation" step loss 2.4)
# One that diverged does not flatten the others; two of one name are told apart.
plot(0 "two.svg: 3 runs; b goes up to 1e\\+09, beyond the picture\n" a b/metrics.jsonl other/a --out two.svg --title "A title")
shows(two.svg b other/a "other/a, validation" "A title" 3.6)
plot(0 "log.svg" a b --log --out log.svg)

plot(1 "c/metrics.jsonl: line 2 is not" a c --out other.svg)
plot(1 "no/metrics.jsonl: cannot be read" no/metrics.jsonl --out other.svg)
plot(1 "other.png: pictures are SVG; use a name that ends in .svg" a --out other.png)
plot(2 "unknown flag --ot; did you mean --out" a --ot other.svg)
plot(2 "runs is required")
file(GLOB others "${WORK}/other.*")
if(others)
  message(FATAL_ERROR "plot_losses left ${others}")
endif()
