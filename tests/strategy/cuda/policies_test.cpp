// The suite of strategies on GPUs, with policies that also reduce host memory.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/strategy/mirrored.hpp>

#include <conformance/strategy.hpp>

using conformance::MakeOfEnvironment;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice, dist::Cuda>;
using InGroups = dist::Mirrored<dist::HierarchicalCopyAllReduce, dist::Cuda>;

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, MakeOfEnvironment<ToOne>, MakeOfEnvironment<InGroups>);
