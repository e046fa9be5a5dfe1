# cmake -P find_nvcc.cmake: fails if there is no nvcc that dist_enable_cuda() accepts.
include("${CMAKE_CURRENT_LIST_DIR}/DistCuda.cmake")
dist_require_nvcc()
