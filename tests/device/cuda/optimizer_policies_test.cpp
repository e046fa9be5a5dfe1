// The optimizer suite on GPUs, with the policies that also reduce host memory.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/policies.cuh>

#include <conformance/make_strategy.hpp>
#include <conformance/optimizer.hpp>
#include <dist/strategy/mirrored.hpp>

using conformance::MakeOfEnvironment;

TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, MakeOfEnvironment<dist::Mirrored<dist::ReductionToOneDevice, dist::Cuda>>,
                               MakeOfEnvironment<dist::Mirrored<dist::HierarchicalCopyAllReduce, dist::Cuda>>);
