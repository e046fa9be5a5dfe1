# cmake -DFOLDER=<folder> -P fetch_cuda_headers.cmake
#
# Fetches the headers of the CUDA runtime (2.4 MB) from PyPI into <folder>/include, unless they are there.
if(EXISTS "${FOLDER}/include/cuda_runtime_api.h")
  return()
endif()
set(files https://files.pythonhosted.org/packages)
set(linux py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl)  # headers are the same for every system
set(wheels
    ${files}/2e/24/d1558f3b68b1d26e706813b1d10aa1d785e4698c425af8db8edc3dced472/nvidia_cuda_runtime-13.0.96-${linux}
    7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
    ${files}/05/69/a1ec4d9f0747d85964206feb47bf359f48a2d6af74c0add8abba6efe3dda/nvidia_cuda_crt-13.0.88-${linux}
    2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4)
set(unpacked "${FOLDER}/wheels")
while(wheels)
  list(POP_FRONT wheels url hash)
  file(DOWNLOAD "${url}" "${FOLDER}/wheel.zip" EXPECTED_HASH SHA256=${hash} TIMEOUT 120)
  file(ARCHIVE_EXTRACT INPUT "${FOLDER}/wheel.zip" DESTINATION "${unpacked}" PATTERNS "*/include/*")
endwhile()
file(RENAME "${unpacked}/nvidia/cu13/include" "${FOLDER}/include")
file(REMOVE_RECURSE "${unpacked}" "${FOLDER}/wheel.zip")
