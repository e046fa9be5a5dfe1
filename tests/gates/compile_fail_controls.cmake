# cmake -DCOMPILER=... -DINCLUDES=<folder,folder> -DSOURCES=<path,path> -DOUTPUT=<file> -P compile_fail_controls.cmake
#
# Compiles the CONTROL branches of all sources in one file, each in its own namespace, after all their includes. A
# source with a line `// alone: <why>` is compiled separately.
set(ENV{LC_ALL} C)

string(REGEX REPLACE "([^,]+),?" "-idirafter\\1;" include_flags "${INCLUDES}")
string(REGEX REPLACE "^-idirafter" "-I" include_flags "${include_flags}")  # the library's own folder
set(includes "")
set(together "")
set(alone "")
string(REPLACE "," ";" sources "${SOURCES}")
foreach(source IN LISTS sources)
  file(STRINGS "${source}" why_alone REGEX "^// alone: " LIMIT_COUNT 1)
  if(why_alone)
    list(APPEND alone "${source}")
    continue()
  endif()
  get_filename_component(folder "${source}" DIRECTORY)
  get_filename_component(name "${source}" NAME_WE)
  file(STRINGS "${source}" lines REGEX "^#include [<\"]")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"" "#include \"${folder}/" line "${line}")
    list(APPEND includes "${line}")
  endforeach()
  string(APPEND together "namespace control_of_${name} {\n#include \"${source}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES includes)
list(SORT includes)
list(JOIN includes "\n" includes)
file(WRITE "${OUTPUT}" "${includes}\n${together}")

foreach(source IN LISTS OUTPUT alone)
  execute_process(COMMAND "${COMPILER}" -std=c++20 -fsyntax-only -DCONTROL ${include_flags} "${source}"
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message("${output}")
    message(FATAL_ERROR "a control does not compile: see above")
  endif()
endforeach()
