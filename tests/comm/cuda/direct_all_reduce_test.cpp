// Replicas on GPUs, several of which may share one, reduce each other's memory: the bits of replicas on the host.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/direct_all_reduce.cuh>

#include <cstddef>

#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/device/cpu.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>
#include <support/collectives_of_devices.hpp>

TEST_CASE("collectives of memory of GPUs give the bits of those of the host") {
  const std::size_t replicas = conformance::replicas_of_environment();
  for (const std::size_t count : {5U, 1003U}) {
    CAPTURE(count);
    const auto expected = testing::reduce<float, dist::SharedMemoryAllReduce, dist::Cpu>(replicas, count);
    const auto reduced = testing::reduce<float, dist::DirectAllReduce, dist::Cuda>(replicas, count);
    CHECK(reduced == expected);
    for (const auto& of_replica : reduced) CHECK(of_replica == reduced[0]);
  }
}
