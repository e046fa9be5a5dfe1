# cmake -DNM=... -DOBJECTS=<object|object> -P headers_check.cmake
#
# Fails if an object defines a function or a variable that only one object of a program may define.
set(ENV{LC_ALL} C)
string(REPLACE "|" ";" OBJECTS "${OBJECTS}")
if(NOT OBJECTS)
  message(FATAL_ERROR "there are no objects to check")
endif()
set(strong "")
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND "${NM}" --demangle --defined-only --extern-only "${object}" RESULT_VARIABLE status
                  OUTPUT_VARIABLE symbols)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "nm cannot read ${object}")
  endif()
  string(REGEX MATCHALL "[0-9a-f]+ [TDBRGS] [^\n]*" found "${symbols}")
  list(APPEND strong ${found})
endforeach()
if(strong)
  list(REMOVE_DUPLICATES strong)
  list(TRANSFORM strong REPLACE "^[0-9a-f]+ . " "  ")
  list(JOIN strong "\n" strong)
  message(FATAL_ERROR "headers define these without inline:\n${strong}")
endif()
