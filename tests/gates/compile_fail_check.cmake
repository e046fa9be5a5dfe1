# cmake -DCOMPILER=... -DINCLUDE=... -DSOURCE=... -P compile_fail_check.cmake
#
# The source says in lines `// expect: <text>` what the compiler's output must contain (each of them). With CONTROL
# defined it must compile; without, it must not, and for the expected reason.
set(ENV{LC_ALL} C)

# message(FATAL_ERROR) breaks long lines; this keeps the sentence whole.
macro(fail sentence)
  message("${sentence}")
  message(FATAL_ERROR "the check failed")
endmacro()

set(command "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE}" "${SOURCE}")

file(STRINGS "${SOURCE}" expectations REGEX "^// expect: ")
if(expectations STREQUAL "")
  fail("${SOURCE} has no line '// expect: ...'")
endif()

execute_process(COMMAND ${command} -DCONTROL RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message("${output}")
  fail("${SOURCE}: the control does not compile")
endif()

execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  fail("${SOURCE} compiles, and must not")
endif()
foreach(expectation IN LISTS expectations)
  string(REGEX REPLACE "^// expect: " "" expectation "${expectation}")
  string(FIND "${output}" "${expectation}" position)
  if(position EQUAL -1)
    message("${output}")
    fail("${SOURCE} fails for another reason, expected: ${expectation}")
  endif()
endforeach()
