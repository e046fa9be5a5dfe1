# nvcc compiles the kernels that tests of devices, the examples and the benchmarks instantiate. Its host code is not
# compiled, because the host's compiler compiles the same sources for the fake GPU.
if(NOT DIST_HAVE_NVCC)
  if(DIST_NVCC)
    dist_add_skipped(gates.kernels_nvcc "nvcc was not found")
  endif()
  return()
endif()
set(sources device/cuda/device_test.cpp device/cuda/body_test.cpp device/cuda/optimizer_test.cpp
    comm/cuda/policies_test.cpp comm/cuda/policies_hierarchical_copy_all_reduce_test.cpp
    comm/cuda/policies_reduction_to_one_device_test.cpp comm/cuda/reduction_to_one_device_suite_test.cpp
    strategy/cuda/central_storage_test.cpp strategy/cuda/variables_test.cpp strategy/step_graph_test.cpp)
if(DIST_HAVE_THRUST)
  list(APPEND sources variable/slices_deduplicator_test.cpp)
endif()
if(DIST_HAVE_NCCL)
  list(APPEND sources comm/nccl/nccl_all_reduce_test.cpp)
endif()
if(DIST_HAVE_NN_CUDA)
  list(APPEND sources nn/cuda/backend_test.cpp)
endif()
set(packages "")
if(DIST_HAVE_MPI AND DIST_HAVE_PMIX AND DIST_HAVE_JSON AND DIST_HAVE_CRYPTO)
  list(APPEND sources gates/nvcc/multi_worker.cu)
  if(DIST_HAVE_NCCL)
    list(APPEND sources gates/nvcc/multi_worker_nccl.cu)
  endif()
  add_library(dist_packages_of_kernels INTERFACE)
  target_link_libraries(dist_packages_of_kernels INTERFACE dist::header_only_mpi)
  set(packages "-I$<JOIN:$<TARGET_PROPERTY:dist_packages_of_kernels,INTERFACE_INCLUDE_DIRECTORIES>,$<SEMICOLON>-I>"
      -DOMPI_SKIP_MPICXX=1 -DMPICH_SKIP_MPICXX=1)
endif()
get_property(gpu_examples GLOBAL PROPERTY dist_gpu_examples)
get_property(gpu_benchmarks GLOBAL PROPERTY dist_gpu_benchmarks)
if(NOT DIST_EVERY_COMPILER)  # the others have kernels of the tests or of these three
  list(FILTER gpu_examples INCLUDE REGEX "/(04|05|13)_[a-z_]*\\.cpp$")
  set(gpu_benchmarks "")
endif()
include(gates/checked_with.cmake)
set(all "")
foreach(test IN LISTS sources gpu_examples gpu_benchmarks)
  cmake_path(ABSOLUTE_PATH test BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE source)
  dist_checked_with(checked "${NVCC_PROGRAM}" "${source}" ${dist_nvcc_flags} -cuda "-I${CMAKE_CURRENT_SOURCE_DIR}"
                    "-I${PROJECT_SOURCE_DIR}/examples" "-I${PROJECT_SOURCE_DIR}/examples/backend/cuda"
                    "-I${PROJECT_SOURCE_DIR}/examples/tpu/none" ${packages} -DDOCTEST_CONFIG_VOID_CAST_EXPRESSIONS)
  list(APPEND all "${checked}")
endforeach()
# All GPU headers in one object, which defines nothing that a second object must not define.
set(includes "")
foreach(header IN LISTS dist_headers)
  dist_requirements("${header}")
  if(header MATCHES "\\.cuh$" AND NOT dist_missing)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/include" "${header}")
    string(APPEND includes "#include <${name}>\n")
  endif()
endforeach()
set(object "${CMAKE_CURRENT_BINARY_DIR}/gpus.o")
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/gpus.cu" CONTENT "${includes}${includes}" @ONLY)
add_custom_command(
  OUTPUT "${object}"
  COMMAND "${NVCC_PROGRAM}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/include" -x cu -arch=sm_90 -Werror=all-warnings -MD
          -MF "${object}.d" -MT "${object}" -c "${CMAKE_CURRENT_BINARY_DIR}/gpus.cu" -o "${object}"
  COMMAND "${CMAKE_COMMAND}" "-DNM=${CMAKE_NM}" "-DOBJECTS=${object}"
          -P "${CMAKE_CURRENT_SOURCE_DIR}/gates/headers_check.cmake"
  DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/gpus.cu" DEPFILE "${object}.d" VERBATIM COMMENT "Compiling the headers for GPUs with nvcc")
list(APPEND all "${object}")
add_custom_target(dist_kernels_nvcc DEPENDS ${all})
add_test(NAME gates.kernels_nvcc
         COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target dist_kernels_nvcc)
set_tests_properties(gates.kernels_nvcc PROPERTIES TIMEOUT 600 COST 60 PROCESSORS 2 RESOURCE_LOCK build)
