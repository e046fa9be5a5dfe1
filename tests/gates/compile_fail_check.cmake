# cmake -DCOMPILERS=<path,path> -DINCLUDES=<folder,folder> -DSOURCE=... [-DPRELUDES=<folder> -DFIRST=<n>] -P compile_fail_check.cmake
#
# A line `// expect: <text>` in the source is the message that each compiler must print first, with little else, because
# programmers rarely read to the third error:
#   - the text is in the first diagnostic: at most one line that says "error:", its own, precedes it;
#   - at most 12 lines follow the line with the text: quoted source lines, notes, and other errors. Notes about the
#     instantiation of templates, which clang++ prints after an error and g++ before it, and lists of including files are
#     not counted.
# A line `// only error` forbids other errors after it: for mistakes in the program's own code.
# A line `// flags: <flags>` adds flags to this compilation. compile_fail_controls.cmake checks for all sources together
# that the CONTROL branch compiles.
#
# PRELUDES has, for the n-th compiler, a precompiled <n>/dist.hpp, and sometimes an <n>/all.hpp for cases that include more
# folders than dist.hpp. One of them is included first unless there are flags. The number of the first compiler is FIRST.
set(ENV{LC_ALL} C)
set(most_lines 12)
set(where_from "^In file included from |: note: (in instantiation of|in evaluation of|during template argument deduction|while |\\(skipping )")

# message(FATAL_ERROR) wraps long lines; this macro keeps the message whole.
macro(fail sentence)
  message("${output}")
  message("${sentence}")
  message(FATAL_ERROR "the check failed")
endmacro()

file(STRINGS "${SOURCE}" expectation REGEX "^// expect: " LIMIT_COUNT 1)
string(REGEX REPLACE "^// expect: " "" expectation "${expectation}")
string(REPLACE "\\;" ";" expectation "${expectation}")  # as file(STRINGS) writes it
if(expectation STREQUAL "")
  fail("${SOURCE} has no line '// expect: ...'")
endif()
file(STRINGS "${SOURCE}" flags REGEX "^// flags: " LIMIT_COUNT 1)
string(REGEX REPLACE "^// flags: " "" flags "${flags}")
separate_arguments(flags)

file(STRINGS "${SOURCE}" only_error REGEX "^// only error$" LIMIT_COUNT 1)

# The first folder is the library's. Folders of packages are system folders, as in programs that link their targets.
string(REGEX REPLACE "([^,]+),?" "-idirafter\\1;" includes "${INCLUDES}")
string(REGEX REPLACE "^-idirafter" "-I" includes "${includes}")
if(flags MATCHES "-nostdinc")
  list(GET includes 0 includes)  # the library's own: packages are hidden
endif()

set(names dist)
file(STRINGS "${SOURCE}" more REGEX "^#include <dist/(checkpoint|coordinator|data|multi_worker|nn|server|tpu|train)[/.]" LIMIT_COUNT 1)
if(more)
  set(names all dist)
endif()

set(number ${FIRST})
string(REPLACE "," ";" compilers "${COMPILERS}")
foreach(compiler IN LISTS compilers)
  set(prelude "")
  if(PRELUDES AND NOT flags)
    foreach(name IN LISTS names)
      if(EXISTS "${PRELUDES}/${number}/${name}.hpp.gch")
        set(prelude -include "${PRELUDES}/${number}/${name}.hpp")
        break()
      endif()
    endforeach()
  endif()
  math(EXPR number "${number} + 1")
  execute_process(COMMAND "${compiler}" -std=c++20 -fsyntax-only ${includes} ${prelude} ${flags} "${SOURCE}"
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status EQUAL 0)
    fail("${SOURCE} compiles with ${compiler}, and must not")
  endif()
  string(FIND "${output}" "${expectation}" position)
  if(position EQUAL -1)
    fail("${SOURCE} fails with ${compiler} for another reason, expected: ${expectation}")
  endif()

  # Output as a list of lines; CMake gives these characters a meaning in lists.
  string(REGEX REPLACE "[][;]" "_" lines "${output}")
  string(REGEX REPLACE "[][;]" "_" text "${expectation}")
  string(REGEX REPLACE "\n$" "" lines "${lines}")
  string(REPLACE "\n" ";" lines "${lines}")
  set(errors 0)
  set(later_errors 0)
  set(found FALSE)
  set(in_backtrace FALSE)
  set(following 0)
  foreach(line IN LISTS lines)
    if(found)
      if(line MATCHES "^[^ ].*: (fatal )?error: ")
        math(EXPR later_errors "${later_errors} + 1")
      endif()
      if(line MATCHES "${where_from}")
        set(in_backtrace TRUE)
      elseif(NOT (in_backtrace AND line MATCHES "^ "))
        set(in_backtrace FALSE)
        math(EXPR following "${following} + 1")
      endif()
    else()
      if(line MATCHES "^[^ ].*: (fatal )?error: ")
        math(EXPR errors "${errors} + 1")
      endif()
      string(FIND "${line}" "${text}" position)
      if(NOT position EQUAL -1)
        set(found TRUE)
      endif()
    endif()
  endforeach()
  if(errors GREATER 1)
    fail("${SOURCE}: with ${compiler} another error comes before the sentence: ${expectation}")
  endif()
  if(only_error AND later_errors GREATER 0)
    fail("${SOURCE}: with ${compiler} other errors follow the only one: ${expectation}")
  endif()
  if(following GREATER most_lines)
    fail("${SOURCE}: with ${compiler} ${following} lines follow the sentence, more than ${most_lines}: ${expectation}")
  endif()
endforeach()
