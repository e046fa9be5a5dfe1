// The optimizer suite on GPUs.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/policies.cuh>

#include <conformance/make_strategy.hpp>
#include <conformance/optimizer.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

using conformance::MakeOfEnvironment;

TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, MakeOfEnvironment<dist::OneDevice<dist::Cuda>>,
                               MakeOfEnvironment<dist::Mirrored<dist::DirectAllReduce, dist::Cuda>>,
                               MakeOfEnvironment<dist::CentralStorage<dist::Cpu, dist::Cuda>>);
