# Functions for the Find modules of libraries.

# dist_find_headers(<variable> <library> <header>): the include folder of <header>, preferably in the prefix of the
# library. Another prefix may have headers without the library: PyPI's torch contains those of oneDNN.
function(dist_find_headers variable library header)
  if(library)
    cmake_path(GET library PARENT_PATH folder)
    find_path(${variable} "${header}" NO_DEFAULT_PATH
              HINTS "${folder}/../include" "${folder}/../../include" "${folder}/../include/${CMAKE_LIBRARY_ARCHITECTURE}")
  endif()
  find_path(${variable} "${header}")
  mark_as_advanced(${variable})
endfunction()

# dist_version_of(<out> <folder> <header> <macro>...): the values of the macros, joined by dots; empty if the header
# does not exist. Uses the preprocessor, because a header may include its version from another one.
function(dist_version_of out folder header)
  set(${out} "" PARENT_SCOPE)
  if(NOT folder)
    return()
  endif()
  list(JOIN ARGN " " macros)
  set(source "${CMAKE_BINARY_DIR}/CMakeFiles/dist_version.cpp")
  file(WRITE "${source}" "#include <${header}>\ndist_version ${macros}\n")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -E -P "-I${folder}" "${source}" OUTPUT_VARIABLE text ERROR_QUIET)
  if(text MATCHES "dist_version +([0-9][0-9UL ]*|\"[0-9.]+[^\"]*\")")
    string(REGEX MATCHALL "[0-9]+" numbers "${CMAKE_MATCH_1}")
    list(JOIN numbers "." version)
    set(${out} "${version}" PARENT_SCOPE)
  endif()
endfunction()
