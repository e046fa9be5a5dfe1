# cmake -DPART=headers|disassembler -DFOLDER=<folder> -P fetch_cuda.cmake
#
# Fetches a part of CUDA 13 from PyPI, unless it is there: the headers of the runtime (2.4 MB) into <folder>/include, or
# cuobjdump and nvdisasm for x86-64 (4.8 MB) into <folder>/bin.
set(files https://files.pythonhosted.org/packages)
set(linux py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl)  # headers are the same for every system
if(PART STREQUAL "headers")
  set(subfolder include)
  set(sign cuda_runtime_api.h)
  set(wheels
      ${files}/2e/24/d1558f3b68b1d26e706813b1d10aa1d785e4698c425af8db8edc3dced472/nvidia_cuda_runtime-13.0.96-${linux}
      7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
      ${files}/05/69/a1ec4d9f0747d85964206feb47bf359f48a2d6af74c0add8abba6efe3dda/nvidia_cuda_crt-13.0.88-${linux}
      2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4)
elseif(PART STREQUAL "disassembler")
  set(subfolder bin)
  set(sign nvdisasm)
  set(wheels
      ${files}/64/46/cfeb5d8aa044ff448484f6cdf5c0b829a764071f01114717e787b7298a24/nvidia_cuda_cuobjdump-13.2.78-${linux}
      394087411405b846bf43aa52ca2ff603bbe18b3b8a1257cda0903e23c17bdbf3
      ${files}/ae/25/253a0ad679fff2362d5c1ef3ff0afd5cc22fbbac3b9b70480fddacaae2e4/nvidia_cuda_nvdisasm-13.2.78-${linux}
      b4ebcd3c5046bf8039ac52675b9dbefd843600969649ecaab0a42b0713a61dae)
else()
  message(FATAL_ERROR "PART is '${PART}': use headers or disassembler.")
endif()
if(EXISTS "${FOLDER}/${subfolder}/${sign}")
  return()
endif()
set(unpacked "${FOLDER}/wheels")
while(wheels)
  list(POP_FRONT wheels url hash)
  file(DOWNLOAD "${url}" "${FOLDER}/wheel.zip" EXPECTED_HASH SHA256=${hash} TIMEOUT 120)
  file(ARCHIVE_EXTRACT INPUT "${FOLDER}/wheel.zip" DESTINATION "${unpacked}" PATTERNS "*/${subfolder}/*")
endwhile()
file(RENAME "${unpacked}/nvidia/cu13/${subfolder}" "${FOLDER}/${subfolder}")
file(REMOVE_RECURSE "${unpacked}" "${FOLDER}/wheel.zip")
