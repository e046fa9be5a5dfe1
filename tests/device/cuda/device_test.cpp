// GPUs: 1 2 4
#include <dist/device/cuda/device.cuh>

#include <conformance/device.hpp>

TEST_CASE_TEMPLATE_INSTANTIATE(devices, dist::Cuda);
