# cmake -DFOLDER=<folder> -P fetch_pjrt.cmake
#
# Fetches XLA's plugin for CPUs and the header of PJRT from PyPI (xla-cpu-pjrt 0.0.1) into <folder>, unless they
# exist: xla_cpu_pjrt.so and include/pjrt_c_api.h. PJRTHeaders_ROOT=<folder> lets dist find them.
#
#   for Linux on  download   on the disk
#   x86-64          63 MB       259 MB
#   aarch64         50 MB
include("${CMAKE_CURRENT_LIST_DIR}/DistWheels.cmake")
set(files https://files.pythonhosted.org/packages)
set(wheel_x86_64
    ${files}/5d/ca/5487881b30d07396c168749ead36f57dbc4538cafdc535943afc81b3e5a2/xla_cpu_pjrt-0.0.1-py3-none-manylinux_2_27_x86_64.whl
    55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc)
set(wheel_aarch64
    ${files}/c9/2d/2c6703356beded886d95f9e37adb49aeca7b21e7617f2ff59893f038f61e/xla_cpu_pjrt-0.0.1-py3-none-manylinux_2_27_aarch64.whl
    8f613be6e891858f40d64f9799319502fff42689661944fc18a6ffd8210b30c9)
cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)
if(NOT DEFINED wheel_${processor})
  message(FATAL_ERROR "XLA's plugin for CPUs is available for x86-64 and aarch64, and this machine is ${processor}. Build it "
                      "from OpenXLA's sources.")
endif()
dist_fetch_wheels("${FOLDER}" include/pjrt_c_api.h ${wheel_${processor}})
