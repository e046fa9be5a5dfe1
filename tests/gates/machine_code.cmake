# The kernels of nvcc/machine_code.cu, compiled for three generations of GPUs, stay within limits of registers,
# instructions and memory accesses. cuobjdump and nvdisasm, which some toolkits lack, read the machine code:
# cmake/fetch_cuda.cmake fetches them into the folder CUDA_DISASSEMBLER_ROOT. Without them PTX is read, which shows
# less.
if(DIST_HAVE_NVCC AND DIST_HAVE_CUDA)
  get_filename_component(toolkit "${NVCC_PROGRAM}" DIRECTORY)
  find_program(CUOBJDUMP_PROGRAM cuobjdump HINTS ENV CUDA_DISASSEMBLER_ROOT "${toolkit}" PATH_SUFFIXES bin)
  find_program(NVDISASM_PROGRAM nvdisasm HINTS ENV CUDA_DISASSEMBLER_ROOT "${toolkit}" PATH_SUFFIXES bin)
  mark_as_advanced(CUOBJDUMP_PROGRAM NVDISASM_PROGRAM)
  foreach(architecture 80 90 100)
    set(test gates.machine_code.sm_${architecture})
    add_test(NAME ${test}
             COMMAND "${CMAKE_COMMAND}" "-DNVCC=${NVCC_PROGRAM}" "-DCUOBJDUMP=${CUOBJDUMP_PROGRAM}"
                     "-DNVDISASM=${NVDISASM_PROGRAM}" "-DINCLUDE=${PROJECT_SOURCE_DIR}/include"
                     "-DARCHITECTURE=sm_${architecture}" "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/gates/nvcc/machine_code.cu"
                     "-DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/machine_code_${architecture}"
                     -P "${CMAKE_CURRENT_SOURCE_DIR}/gates/machine_code_check.cmake")
    set_tests_properties(${test} PROPERTIES TIMEOUT 120)
  endforeach()
elseif(DIST_NVCC)
  dist_add_skipped(gates.machine_code "nvcc was not found")
endif()
