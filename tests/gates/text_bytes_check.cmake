# cmake -DBUILD=... -DTARGET=... -DOBJECT=... -DSIZE=... -DBUDGET=... -DPROGRAM=... -P text_bytes_check.cmake
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --target "${TARGET}" OUTPUT_VARIABLE output ERROR_VARIABLE output
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} does not compile:\n${output}")
endif()
execute_process(COMMAND "${SIZE}" "${OBJECT}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output MATCHES "\n *([0-9]+)")
  message(FATAL_ERROR "size printed no number:\n${output}")
endif()
math(EXPR kilobytes "(${CMAKE_MATCH_1} + 500) / 1000")
message("${PROGRAM}: ${kilobytes} KB of machine code, at most ${BUDGET}")
if(kilobytes GREATER BUDGET)
  message(FATAL_ERROR "Programs take longer to compile than before. Move code that depends on no type of the program to an .ipp file, or "
                      "set the budget in tests/gates/text_bytes.txt and say why.")
endif()
