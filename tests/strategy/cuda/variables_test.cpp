// The suites of variables and their values, on GPUs.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

#include <conformance/variable.hpp>
#include <conformance/variable_values.hpp>

using conformance::MakeOfEnvironment;
using Central = dist::CentralStorage<dist::Cpu, dist::Cuda>;
using One = dist::OneDevice<dist::Cuda>;
using Mirrored = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;

TEST_CASE_TEMPLATE_INSTANTIATE(variables, MakeOfEnvironment<One>, MakeOfEnvironment<Mirrored>,
                               MakeOfEnvironment<Central>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_values, MakeOfEnvironment<One>, MakeOfEnvironment<Mirrored>,
                               MakeOfEnvironment<Central>);
