# cmake -DVALGRIND=... -DCOMPILER=... -DFOLDERS=... -DDEFINITIONS=... -DSOURCE=... -DHEADER=... -DBUDGET=...
#       -P instructions_check.cmake
set(ENV{LC_ALL} C)
list(REMOVE_DUPLICATES FOLDERS)
list(TRANSFORM FOLDERS PREPEND -isystem)
list(TRANSFORM FOLDERS REPLACE "^-isystem/usr/include$" "")  # which is looked through anyway, and last
list(REMOVE_ITEM FOLDERS "")
list(TRANSFORM DEFINITIONS PREPEND -D)
execute_process(
  COMMAND "${VALGRIND}" --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null --trace-children=yes
          "${COMPILER}" -std=c++20 -fsyntax-only ${FOLDERS} ${DEFINITIONS} "${SOURCE}"
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the compiler under valgrind ended with ${status}:\n${output}")
endif()
# Both the driver and the compiler report a count; the larger is the compiler's.
set(most 0)
string(REGEX MATCHALL "I +refs: +[0-9,]+" counts "${output}")
foreach(count IN LISTS counts)
  string(REGEX REPLACE "[^0-9]" "" count "${count}")
  if(count GREATER most)
    set(most ${count})
  endif()
endforeach()
math(EXPR millions "${most} / 1000000")
message("${HEADER}: ${millions} million instructions, at most ${BUDGET}")
if(millions EQUAL 0)
  message(FATAL_ERROR "valgrind reported no instructions:\n${output}")
elseif(millions GREATER BUDGET)
  message(FATAL_ERROR "${HEADER} costs every file that includes it more than before. Take out what is not needed "
                      "(a heavy standard header, a template in a header that many include), or set the budget in "
                      "tests/gates/instructions.txt and say why.")
endif()
