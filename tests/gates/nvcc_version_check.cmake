# cmake -DDIRECTORY=<folder> -P nvcc_version_check.cmake
#
# Checks which of several nvcc is chosen: the first that supports C++20.
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/DistCuda.cmake")
file(REMOVE_RECURSE "${DIRECTORY}")
foreach(version IN ITEMS 11.8 12.4 13.0)
  set(nvcc "${DIRECTORY}/${version}/bin/nvcc")
  file(WRITE "${nvcc}" "#!/bin/sh\necho 'Cuda compilation tools, release ${version}, V${version}.89'\n")
  file(CHMOD "${nvcc}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
file(WRITE "${DIRECTORY}/silent/bin/nvcc" "#!/bin/sh\n")
file(CHMOD "${DIRECTORY}/silent/bin/nvcc" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(ENV{CMAKE_PREFIX_PATH} "${DIRECTORY}/silent:${DIRECTORY}/11.8:${DIRECTORY}/12.4:${DIRECTORY}/13.0")
dist_find_nvcc(found)
if(NOT found STREQUAL "${DIRECTORY}/12.4/bin/nvcc")
  message(FATAL_ERROR "found ${found}")
endif()
