# plot_losses makes a PNG of two runs, and says what is wrong with a third.
file(REMOVE_RECURSE "${WORK}")
file(WRITE "${WORK}/a/metrics.jsonl" "{\"step\": 0, \"loss\": 2.5}\n{\"step\": 1, \"loss\": 2}\n")
file(WRITE "${WORK}/b/metrics.jsonl" "{\"step\": 0, \"loss\": 2.4}\n")
file(WRITE "${WORK}/c/metrics.jsonl" "{\"step\": 0, \"loss\": 2.4}\n{\"step\": 1}\n")

execute_process(COMMAND "${PROGRAM}" a/metrics.jsonl b/metrics.jsonl --out losses.png WORKING_DIRECTORY "${WORK}"
                RESULT_VARIABLE code ERROR_VARIABLE message)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "plot_losses: ${message}")
endif()
file(READ "${WORK}/losses.png" first LIMIT 8 HEX)
if(NOT first STREQUAL "89504e470d0a1a0a")
  message(FATAL_ERROR "losses.png is not a PNG: it begins with ${first}")
endif()

execute_process(COMMAND "${PROGRAM}" a/metrics.jsonl c/metrics.jsonl --out other.png WORKING_DIRECTORY "${WORK}"
                RESULT_VARIABLE code ERROR_VARIABLE message)
if(NOT code EQUAL 1 OR NOT message MATCHES "c/metrics.jsonl: line 2 is not" OR EXISTS "${WORK}/other.png")
  message(FATAL_ERROR "plot_losses took a line without a loss: ${code}: ${message}")
endif()
