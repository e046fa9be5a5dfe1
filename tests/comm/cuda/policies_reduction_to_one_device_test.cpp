// ReductionToOneDevice of GPU memory, with replicas that share GPUs, is bit-identical to replicas on the host.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/policies.cuh>

#include <cstddef>

#include <dist/core/float16.hpp>
#include <dist/device/cpu.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>
#include <support/collectives_of_devices.hpp>

using Policy = dist::ReductionToOneDevice;

TEST_CASE_TEMPLATE("reductions in GPU memory are bit-identical to host memory (spec H04)", T, float, dist::BFloat16) {
  const std::size_t replicas = conformance::replicas_of_environment();
  for (const std::size_t count : {5U, 1003U}) {
    CAPTURE(count);
    const auto expected = testing::reduce<T, Policy, dist::Cpu>(replicas, count);
    const auto reduced = testing::reduce<T, Policy, dist::Cuda>(replicas, count);
    CHECK(reduced == expected);
    for (const auto& of_replica : reduced) CHECK(of_replica == reduced[0]);
  }
}
