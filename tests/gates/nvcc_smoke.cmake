# An object of nvcc, linked by the project's compiler with the fake runtime instead of NVIDIA's: its host code registers
# and launches kernels as on a GPU. The kernels themselves are host functions (nvcc/smoke_twins.cpp).
if(DIST_HAVE_NVCC AND DIST_HAVE_CUDA)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/nvcc_smoke.o")
  # GPU code does not run here, so it is not optimized.
  add_custom_command(
    OUTPUT "${object}"
    COMMAND "${NVCC_PROGRAM}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/include" "-I${CMAKE_CURRENT_SOURCE_DIR}" -arch=sm_90
            -Werror=all-warnings -Xcompiler=-Wall,-Wextra -Xcicc -O0 -Xptxas -O0 -DDOCTEST_CONFIG_VOID_CAST_EXPRESSIONS
            -DDIST_CONTRACT_LEVEL=2 -MD -MF "${object}.d" -MT "${object}"
            -c "${CMAKE_CURRENT_SOURCE_DIR}/gates/nvcc/smoke.cu" -o "${object}"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/gates/nvcc/smoke.cu" DEPFILE "${object}.d" VERBATIM
    COMMENT "Compiling gates/nvcc/smoke.cu with nvcc")
  add_executable(dist_nvcc_smoke EXCLUDE_FROM_ALL gates/nvcc/smoke_twins.cpp "${object}" $<TARGET_OBJECTS:dist_test_main>)
  dist_test_settings(dist_nvcc_smoke -O0 dist::dist dist::cuda)
  add_custom_target(dist_run_nvcc_smoke COMMAND dist_nvcc_smoke)
  add_test(NAME gates.nvcc_smoke
           COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target dist_run_nvcc_smoke)
  set_tests_properties(gates.nvcc_smoke PROPERTIES TIMEOUT 300 COST 30 RESOURCE_LOCK build
                       FAIL_REGULAR_EXPRESSION "test cases: +0 ")
elseif(DIST_NVCC AND DIST_HAVE_CUDA)
  dist_add_skipped(gates.nvcc_smoke "nvcc was not found")
endif()
