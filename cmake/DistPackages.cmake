# Looks for the optional packages. Sets DIST_HAVE_<X>, and dist_report: one line for each, for the summary.
set(dist_report "")

# dist_found(<NAME> <what> <found> <version> <how to get it> <what is not built without it>)
function(dist_found name what found version hint without)
  set(have FALSE)
  if(NOT DIST_${name})
    set(line "off (DIST_${name})")
  elseif(found)
    set(have TRUE)
    set(line "${version}")
  elseif(DIST_${name} STREQUAL "AUTO")
    set(line "not found (${hint}): ${without}")
  else()
    set(places ${CMAKE_PREFIX_PATH} ${CMAKE_SYSTEM_PREFIX_PATH})
    list(REMOVE_DUPLICATES places)
    list(JOIN places ", " places)
    message(FATAL_ERROR "DIST_${name} is ON and ${what} was not found: ${hint}, or set DIST_${name} to AUTO or OFF.\n"
                        "Looked under ${places}; what is missing stands above.")
  endif()
  set(DIST_HAVE_${name} ${have} PARENT_SCOPE)
  list(APPEND dist_report "${what}|${line}")
  set(dist_report "${dist_report}" PARENT_SCOPE)
endfunction()

# Wanted at all? A package that is switched off is not even looked for; of one that must be there, CMake says which part
# is missing.
macro(dist_look_for name)
  if(DIST_${name} STREQUAL "AUTO")
    find_package(${ARGN} QUIET)
  elseif(DIST_${name})
    find_package(${ARGN})
  endif()
endmacro()

find_package(Threads REQUIRED)

dist_look_for(GZIP ZLIB)
dist_found(GZIP zlib "${ZLIB_FOUND}" "${ZLIB_VERSION_STRING}"
           "apt install zlib1g-dev" "no gzip, IDX and Fashion-MNIST files")

dist_look_for(SUMMARY protozero 1.7)
dist_found(SUMMARY protozero "${protozero_FOUND}" "${protozero_VERSION}"
           "apt install libprotozero-dev" "no event files for TensorBoard")

dist_look_for(PNG PNG 1.6)
dist_found(PNG libpng "${PNG_FOUND}" "${PNG_VERSION_STRING}" "apt install libpng-dev" "no PNG images")

dist_look_for(JPEG TurboJPEG)
dist_found(JPEG libjpeg-turbo "${TurboJPEG_FOUND}" "${TurboJPEG_VERSION}"
           "apt install libturbojpeg0-dev" "no JPEG images")

dist_look_for(HWLOC hwloc 2.4)
dist_found(HWLOC hwloc "${hwloc_FOUND}" "${hwloc_VERSION}"
           "apt install libhwloc-dev" "replicas are placed by the system's own description")

dist_look_for(ONEDNN oneDNN)
dist_found(ONEDNN oneDNN "${oneDNN_FOUND}" "${oneDNN_VERSION}"
           "apt install libdnnl-dev" "no onednn layers, the reference layers remain")

dist_look_for(TORCH LibTorch 1.13)
dist_found(TORCH libtorch "${LibTorch_FOUND}" "${LibTorch_VERSION}"
           "apt install libtorch-dev" "no modules of libtorch")

dist_look_for(JSON jansson 2.10)
dist_found(JSON jansson "${jansson_FOUND}" "${jansson_VERSION}"
           "apt install libjansson-dev" "no TF_CONFIG, no safetensors files, no workers in several processes")

dist_look_for(CRYPTO OpenSSL 3)
dist_found(CRYPTO "OpenSSL" "${OPENSSL_FOUND}" "${OPENSSL_VERSION}"
           "apt install libssl-dev" "no workers in several processes")

dist_look_for(GRPC GRPCCore 29)
dist_found(GRPC "gRPC's C core" "${GRPCCore_FOUND}" "${GRPCCore_VERSION}"
           "apt install libgrpc-dev" "no calls between processes by gRPC")

dist_look_for(PMIX PMIx)
dist_found(PMIX PMIx "${PMIx_FOUND}" "${PMIx_VERSION}"
           "apt install libpmix-dev" "workers in several processes are started by a launcher or own MPI")

dist_look_for(MPI DistMPI)
dist_found(MPI MPI "${DistMPI_FOUND}" "${DistMPI_VERSION}"
           "apt install libopenmpi-dev openmpi-bin" "no workers in several processes")

dist_look_for(CUDA CUDAHeaders 12)
dist_found(CUDA "CUDA runtime" "${CUDAHeaders_FOUND}" "${CUDAHeaders_VERSION}"
           "cmake -DPART=headers -DFOLDER=<folder> -P cmake/fetch_cuda.cmake, and CUDAHeaders_ROOT=<folder>" "no code for GPUs")

dist_look_for(THRUST DistThrust)
dist_found(THRUST Thrust "${DistThrust_FOUND}" "${DistThrust_VERSION}"
           "NVIDIA's package cuda-cccl-13-0, or PyPI's nvidia-cuda-cccl" "no Thrust per replica")

dist_look_for(NVTX NVTXHeaders 3)
dist_found(NVTX NVTX "${NVTXHeaders_FOUND}" "${NVTXHeaders_VERSION}"
           "NVIDIA's package cuda-nvtx-13-0, or PyPI's nvidia-nvtx" "no ranges for profilers")

dist_look_for(NCCL NCCLHeaders 2.18)
dist_found(NCCL NCCL "${NCCLHeaders_FOUND}" "${NCCLHeaders_VERSION}"
           "NVIDIA's package libnccl-dev, or PyPI's nvidia-nccl-cu13" "no NcclAllReduce")

dist_look_for(NN_CUDA CUDNNHeaders 9)
dist_found(NN_CUDA "cuBLAS and cuDNN" "${CUDNNHeaders_FOUND}" "${CUDNNHeaders_VERSION}"
           "NVIDIA's packages libcublas-dev-13-0 and cudnn9-cuda-13" "no networks on GPUs")

dist_look_for(PJRT PJRTHeaders)
dist_found(PJRT "XLA through PJRT" "${PJRTHeaders_FOUND}" "${PJRTHeaders_VERSION}"
           "cmake -DFOLDER=<folder> -P cmake/fetch_pjrt.cmake, and PJRTHeaders_ROOT=<folder>" "no programs compiled by XLA")

dist_look_for(EIGEN Eigen3 3.4 CONFIG)
dist_found(EIGEN Eigen "${Eigen3_FOUND}" "${Eigen3_VERSION}" "apt install libeigen3-dev" "no example with Eigen")

if(DIST_NVCC)
  dist_find_nvcc(NVCC_PROGRAM)
  mark_as_advanced(NVCC_PROGRAM)
endif()
set(nvcc_found FALSE)
if(NVCC_PROGRAM)
  dist_nvcc_version(nvcc_version "${NVCC_PROGRAM}")
  if(nvcc_version VERSION_GREATER_EQUAL 12)
    set(nvcc_found TRUE)
  endif()
endif()
dist_found(NVCC nvcc "${nvcc_found}" "${nvcc_version}" "NVIDIA's package cuda-toolkit-13-0"
           "headers are not compiled for CUDA")

dist_look_for(TESTS doctest CONFIG)
dist_found(TESTS doctest "${doctest_FOUND}" "${doctest_VERSION}" "apt install doctest-dev" "no tests")

dist_look_for(BENCHMARKS benchmark CONFIG)
dist_found(BENCHMARKS "Google Benchmark" "${benchmark_FOUND}" "${benchmark_VERSION}"
           "apt install libbenchmark-dev" "no benchmarks")
