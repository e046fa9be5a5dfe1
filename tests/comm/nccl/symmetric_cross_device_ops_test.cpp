// Runs the suite of cross-device ops for NcclSymmetricAllReduce, with operands in NCCL windows.
// replicas on separate GPUs: 1 2 3 4
#include <dist/comm/nccl/nccl_symmetric_all_reduce.cuh>

#define DIST_TEST_FEW_ELEMENTS
#include <conformance/cross_device_ops.hpp>

using Gpus = conformance::OnDevices<dist::NcclSymmetricAllReduce, dist::Cuda>;

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, Gpus);
