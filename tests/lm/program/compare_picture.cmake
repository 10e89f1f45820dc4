# xgrad compare --out FILE.svg draws runs, given by folder or file, and reports bad ones.
file(REMOVE_RECURSE "${WORK}")
file(WRITE "${WORK}/a/metrics.jsonl" "{\"step\": 0, \"loss\": 2.5}\n{\"step\": 1, \"loss\": 2, \"val_loss\": 2.25}\n")
file(WRITE "${WORK}/b/metrics.jsonl" "{\"step\": 0, \"loss\": 2.4}\n{\"step\": 1, \"loss\": 1e9}\n")
file(WRITE "${WORK}/live/metrics.jsonl" "{\"step\": 0, \"loss\": 2}\n{\"step\": 1, \"loss\": NaN}\n{\"step\": 2, \"loss\": 3}\n{\"step\": 3, \"lo")
file(WRITE "${WORK}/c/metrics.jsonl" "{\"step\": 0, \"loss\": 2.4}\n{\"step\": 1}\n")
file(COPY "${WORK}/a" DESTINATION "${WORK}/other")

# Runs it with arguments; expects that code, and printed lines that match.
function(compare code pattern)
  execute_process(COMMAND "${PROGRAM}" compare ${ARGN} WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE result
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL code OR NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "compare ${ARGN}: exit code ${result}, expected ${code} and \"${pattern}\":\n${output}")
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

compare(0 "best validation loss" a --out losses.svg)
shows(losses.svg a "a, validation" step loss 2.4)
# A run that diverged does not flatten the others; two with one name are distinguished.
compare(0 "beyond the picture: b up to 1e\\+09\n" a b/metrics.jsonl other/a --out two.svg)
shows(two.svg b other/a "other/a, validation" 3.6)
compare(0 "best validation loss" a --out losses.svg --overwrite)
# Python's NaN; an incomplete last line.
compare(0 "losses not finite +1" live --out live.svg)
shows(live.svg "live \\(1 not finite\\)")
file(WRITE "${WORK}/none/metrics.jsonl" "{\"step\": 0, \"loss\": NaN}\n")
compare(1 "xgrad: there is no loss that is finite\n$" none --out other.svg)

compare(0 "^xgrad: c/metrics.jsonl: line 2 is not [^\n]*, and is skipped\n" a c --out two.svg --overwrite)
compare(1 "/dev/zero: is not a regular file" /dev/zero --out other.svg)
compare(1 "other.png: [^\n]*.html" a --out other.png)
compare(2 "unknown flag '--ot'; did you mean --out" a --ot other.svg)
compare(2 "RUN is needed")
file(GLOB others "${WORK}/other.*")
if(others)
  message(FATAL_ERROR "compare left ${others}")
endif()
