# cmake -DFOLDER=<folder> -P fetch_cuda_disassembler.cmake
#
# Fetches cuobjdump and nvdisasm (4.8 MB, x86-64) from PyPI into <folder>/bin, unless they are there.
if(EXISTS "${FOLDER}/bin/nvdisasm")
  return()
endif()
set(files https://files.pythonhosted.org/packages)
set(linux 13.2.78-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl)
set(wheels
    ${files}/64/46/cfeb5d8aa044ff448484f6cdf5c0b829a764071f01114717e787b7298a24/nvidia_cuda_cuobjdump-${linux}
    394087411405b846bf43aa52ca2ff603bbe18b3b8a1257cda0903e23c17bdbf3
    ${files}/ae/25/253a0ad679fff2362d5c1ef3ff0afd5cc22fbbac3b9b70480fddacaae2e4/nvidia_cuda_nvdisasm-${linux}
    b4ebcd3c5046bf8039ac52675b9dbefd843600969649ecaab0a42b0713a61dae)
set(unpacked "${FOLDER}/wheels")
while(wheels)
  list(POP_FRONT wheels url hash)
  file(DOWNLOAD "${url}" "${FOLDER}/wheel.zip" EXPECTED_HASH SHA256=${hash} TIMEOUT 120)
  file(ARCHIVE_EXTRACT INPUT "${FOLDER}/wheel.zip" DESTINATION "${unpacked}" PATTERNS "*/bin/*")
endwhile()
foreach(program cuobjdump nvdisasm)
  file(CHMOD "${unpacked}/nvidia/cu13/bin/${program}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
file(RENAME "${unpacked}/nvidia/cu13/bin" "${FOLDER}/bin")
file(REMOVE_RECURSE "${unpacked}" "${FOLDER}/wheel.zip")
