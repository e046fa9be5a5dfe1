# cmake -DPART=<part> -DFOLDER=<folder> -P fetch_cuda.cmake
#
# Fetches a part of CUDA 13 from PyPI, unless it is there:
#
#   part          into <folder>                                                     download   on the disk
#   headers       include/: the headers of the CUDA runtime, CCCL, NVTX, cuBLAS,      5.9 MB         24 MB
#                 cuDNN and NCCL
#   disassembler  bin/: cuobjdump and nvdisasm                                        4.8 MB
#   compiler      nvcc, the libraries of the runtime, and the same headers            106 MB        273 MB
#   cublas        the headers and libraries of cuBLAS                                 423 MB        570 MB
#   cudnn         the headers and libraries of cuDNN                                  366 MB        471 MB
#   nccl          the header and library of NCCL                                      197 MB        209 MB
#
# CMAKE_PREFIX_PATH=<folder> lets dist find the last four. All are for Linux on x86-64, except the headers, which work
# on every system.
#
# The files and their hashes are pinned. Only CMake is needed; pip would also need Python, venv and a package index,
# which a minimal Debian does not have.
include("${CMAKE_CURRENT_LIST_DIR}/DistWheels.cmake")
set(files https://files.pythonhosted.org/packages)
set(since_2010 py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl)
set(since_2014 py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl)
set(runtime
    ${files}/2e/24/d1558f3b68b1d26e706813b1d10aa1d785e4698c425af8db8edc3dced472/nvidia_cuda_runtime-13.0.96-${since_2014}
    7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
    ${files}/05/69/a1ec4d9f0747d85964206feb47bf359f48a2d6af74c0add8abba6efe3dda/nvidia_cuda_crt-13.0.88-${since_2014}
    2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4)
set(cccl
    ${files}/ab/fb/0384bb2129bed6b1b39f8e44471c615ab5ab29b7e55817538a1d390d8f84/nvidia_cuda_cccl-13.0.85-${since_2014}
    e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649)
set(cublas_wheel ${files}/e7/44/423ac00af4dd95a5aeb27207e2c0d9b7118702149bf4704c3ddb55bb7429/nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_x86_64.whl)
set(cudnn_wheel ${files}/1a/fd/850146fb4f33db76f8815758a539d3ce46fc6579dc2f6f92ee1559e40765/nvidia_cudnn_cu13-9.19.1.2-py3-none-manylinux_2_27_x86_64.whl)
set(nccl_wheel ${files}/b0/b4/878fefaad5b2bcc6fcf8d474a25e3e3774bc5133e4b58adff4d0bca238bc/nvidia_nccl_cu13-2.28.9-py3-none-manylinux_2_18_x86_64.whl)
set(header_wheels
    "${cublas_wheel}#49380" 5da805e9141aa5fcbac761a53a853489226a7331098a2bd19dcfad73385c63e1
    "${cudnn_wheel}#71401" be14f79466a40b5156026286a47392bbe84463e046c24a52f6a5fefadffe9c48
    "${nccl_wheel}#67232" a29db4cdc6d78e933998320343497e9dd32f8520db189459258f805fd3c15dbe
    ${files}/c2/f3/d86c845465a2723ad7e1e5c36dcd75ddb82898b3f53be47ebd429fb2fa5d/nvidia_nvtx-13.0.85-py3-none-manylinux1_x86_64.manylinux_2_5_x86_64.whl
    4936d1d6780fbe68db454f5e72a42ff64d1fd6397df9f363ae786930fd5c1cd4
    ${cccl}
    ${runtime})
if(PART STREQUAL "headers")
  set(sign include/cuda_runtime_api.h)
  set(wheels ${header_wheels})
elseif(PART STREQUAL "disassembler")
  set(sign bin/nvdisasm)
  set(wheels
      ${files}/64/46/cfeb5d8aa044ff448484f6cdf5c0b829a764071f01114717e787b7298a24/nvidia_cuda_cuobjdump-13.2.78-${since_2014}
      394087411405b846bf43aa52ca2ff603bbe18b3b8a1257cda0903e23c17bdbf3
      ${files}/ae/25/253a0ad679fff2362d5c1ef3ff0afd5cc22fbbac3b9b70480fddacaae2e4/nvidia_cuda_nvdisasm-13.2.78-${since_2014}
      b4ebcd3c5046bf8039ac52675b9dbefd843600969649ecaab0a42b0713a61dae)
elseif(PART STREQUAL "compiler")
  set(sign bin/nvcc)
  set(wheels
      ${files}/71/8b/a546c12881fffeba927d810598987df25d74b8b241788c7db8dfc93b0173/nvidia_cuda_nvcc-13.0.88-${since_2014}
      56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
      ${files}/15/b0/ee41e6d1108d959b5097163e7190c2d0f7857dea75606ce358f0275891b4/nvidia_nvvm-13.0.88-${since_2010}
      c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
      ${header_wheels})
elseif(PART STREQUAL "cublas")
  set(sign include/cublas_v2.h)
  set(wheels ${cublas_wheel} ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171)
elseif(PART STREQUAL "cudnn")
  set(sign include/cudnn_version.h)
  set(wheels ${cudnn_wheel} 7609f4bbcde269c4aa8869e12112a1924fb6e032a00842912caafcb4e15d42d6)
elseif(PART STREQUAL "nccl")
  set(sign include/nccl.h)
  set(wheels ${nccl_wheel} e4553a30f34195f3fa1da02a6da3d6337d28f2003943aa0a3d247bbc25fefc42)
else()
  message(FATAL_ERROR "PART is '${PART}': use headers, disassembler, compiler, cublas, cudnn or nccl.")
endif()
cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)
if(NOT PART STREQUAL "headers" AND NOT processor STREQUAL "x86_64")
  message(FATAL_ERROR "The files are for x86-64, and this machine is ${processor}. Install NVIDIA's package "
                      "cuda-toolkit-13-0.")
endif()
dist_fetch_wheels("${FOLDER}" "${sign}" ${wheels})
