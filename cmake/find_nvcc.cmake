# cmake -P find_nvcc.cmake: fails where there is no nvcc that dist_enable_cuda() would take.
include("${CMAKE_CURRENT_LIST_DIR}/DistCuda.cmake")
dist_require_nvcc()
