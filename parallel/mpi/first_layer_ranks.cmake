# The program with first_layer.diff prints the same digits on one process and on two.
execute_process(COMMAND "${PROGRAM}" RESULT_VARIABLE code OUTPUT_VARIABLE one ERROR_VARIABLE error)
if(NOT code EQUAL 0 OR NOT one MATCHES "step 500  loss .*all [0-9]+ elements agree")
  message(FATAL_ERROR "alone: exit code ${code}\n${one}${error}")
endif()
if(MPIRUN)
  execute_process(COMMAND ${MPIRUN} -n 2 "${PROGRAM}" RESULT_VARIABLE code OUTPUT_VARIABLE many ERROR_VARIABLE error)
  string(REPLACE "\r" "" many "${many}")  # mpirun's terminals
  if(NOT code EQUAL 0 OR NOT many STREQUAL one)
    message(FATAL_ERROR "2 ranks: exit code ${code}\n${many}${error}alone:\n${one}")
  endif()
endif()
