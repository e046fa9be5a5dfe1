// Runs the suite of cross-device ops for ReductionToOneDevice on GPUs, with operands in GPU memory.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/policies.cuh>

#define DIST_TEST_FEW_ELEMENTS
#define DIST_TEST_FEW_TYPES
#include <conformance/cross_device_ops.hpp>

using Gpus = conformance::OnDevices<dist::ReductionToOneDevice, dist::Cuda>;

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, Gpus);
