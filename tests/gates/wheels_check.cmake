# cmake -DDIRECTORY=<folder> -P wheels_check.cmake
#
# Tests cmake/DistWheels.cmake with complete and incomplete wheels. Creates the wheels as local files, so no network is
# needed. With FOLDER and WHEELS it is the program that fetches.
if(DEFINED FOLDER)
  include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/DistWheels.cmake")
  dist_fetch_wheels("${FOLDER}" include/tool.h ${WHEELS})
  return()
endif()

# make_wheel(<name> <file> <size in its list>): creates a wheel with a file of 10 bytes below nvidia/tool, and stores
# its address and hash in <name>.
function(make_wheel name file size)
  set(folder "${DIRECTORY}/${name}")
  file(WRITE "${folder}/nvidia/tool/${file}" "123456789\n")
  set(list "${name}-1.0.dist-info/RECORD")
  file(WRITE "${folder}/${list}" "nvidia/tool/${file},sha256=0,${size}\n${list},,\n")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E tar cf "${DIRECTORY}/${name}.whl" --format=zip nvidia "${name}-1.0.dist-info"
                  WORKING_DIRECTORY "${folder}" COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 "${DIRECTORY}/${name}.whl" hash)
  set(${name} "file://${DIRECTORY}/${name}.whl" ${hash} PARENT_SCOPE)
endfunction()

# fetch(<wheel>...): sets `status`, and `said` to the message on one line.
set(made "${DIRECTORY}/made")
function(fetch)
  execute_process(COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${made}" "-DWHEELS=${ARGN}" -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
                  RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  set(status "${status}" PARENT_SCOPE)
  set(said "${said}" PARENT_SCOPE)
endfunction()

function(expect_whole what)
  file(GLOB_RECURSE files RELATIVE "${made}" "${made}/*")
  if(NOT status EQUAL 0 OR NOT files STREQUAL "bin/tool;include/tool.h" OR EXISTS "${made}.part")
    message(FATAL_ERROR "${what}: status ${status}, files ${files}: ${said}")
  endif()
  file(SIZE "${made}/bin/tool" size)
  if(NOT size EQUAL 10)
    message(FATAL_ERROR "${what}: bin/tool has ${size} bytes")
  endif()
endfunction()

function(expect_failure what sentence)
  if(status EQUAL 0 OR EXISTS "${made}" OR NOT said MATCHES "${sentence}")
    message(FATAL_ERROR "${what}: status ${status}, and it said: ${said}")
  endif()
endfunction()

file(REMOVE_RECURSE "${DIRECTORY}")
make_wheel(program bin/tool 10)
make_wheel(header include/tool.h 10)
make_wheel(cut bin/tool 11)
list(GET program 0 program_file)
set(other ${program_file} 0000000000000000000000000000000000000000000000000000000000000000)
set(missing "file://${DIRECTORY}/missing.whl" 0)

fetch(${program} ${header})
expect_whole("two wheels")
fetch(${missing})
expect_whole("a folder that is there")
file(REMOVE_RECURSE "${made}")

# The start of a wheel, without its list of files.
list(GET header 0 header_file)
file(READ "${DIRECTORY}/header.whl" bytes HEX)
string(FIND "${bytes}" "504b0304" digits REVERSE)
math(EXPR length "${digits} / 2")
execute_process(COMMAND head -c ${length} "${DIRECTORY}/header.whl" OUTPUT_FILE "${DIRECTORY}/start" COMMAND_ERROR_IS_FATAL ANY)
file(SHA256 "${DIRECTORY}/start" hash)
fetch("${header_file}#${length}" ${hash} ${program})
expect_whole("the start of a wheel, and a whole one")
file(REMOVE_RECURSE "${made}")
fetch("${header_file}#${length}" 0 ${program})
expect_failure("the start of a wheel with another hash" "header.whl has the wrong SHA-256")

fetch(${header} ${other})
expect_failure("another hash" "program.whl has the wrong SHA-256 [(].* instead of 0000")
fetch(${header} ${program})
expect_whole("the right hash after another one")
file(REMOVE_RECURSE "${made}")

fetch(${program} ${missing})
expect_failure("no such file" "missing.whl could not be downloaded [(]")
file(RENAME "${DIRECTORY}/program.whl" "${DIRECTORY}/away.whl")
fetch(${program} ${header})
expect_whole("what an earlier run had downloaded")
file(REMOVE_RECURSE "${made}")
file(RENAME "${DIRECTORY}/away.whl" "${DIRECTORY}/program.whl")

fetch(${header} ${cut})
expect_failure("a file that is too short" "cut.whl could not be unpacked completely into")
file(REMOVE_RECURSE "${made}.part")

# An interrupted run leaves half of a download and half of its unpacked files.
file(WRITE "${made}.part/program.whl" "PK")
file(WRITE "${made}.part/unpacked/nvidia/tool/bin/tool" "1234")
file(WRITE "${made}.part/unpacked/nvidia/tool/include/stray.h" "")
fetch(${program} ${header})
expect_whole("after an interruption")

file(REMOVE "${made}/include/tool.h")
fetch(${program} ${header})
if(status EQUAL 0 OR NOT said MATCHES "has no include/tool.h. Remove it" OR NOT EXISTS "${made}/bin/tool")
  message(FATAL_ERROR "another folder of that name: status ${status}, and it said: ${said}")
endif()
