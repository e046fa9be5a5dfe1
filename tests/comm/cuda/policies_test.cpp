// Replicas on GPUs, some of which share a GPU, reduce each other's memory, bit-identical to replicas on the host.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/policies.cuh>

#include <cstddef>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>
#include <support/collectives_of_devices.hpp>
#include <support/gpu_counts.hpp>

TEST_CASE("collectives of GPU memory are bit-identical to host memory") {
  const std::size_t replicas = conformance::replicas_of_environment();
  for (const std::size_t count : {5U, 1003U}) {
    CAPTURE(count);
    const auto expected = testing::reduce<float, dist::ThreadAllReduce, dist::Cpu>(replicas, count);
    const auto reduced = testing::reduce<float, dist::DirectAllReduce, dist::Cuda>(replicas, count);
    CHECK(reduced == expected);
    for (const auto& of_replica : reduced) CHECK(of_replica == reduced[0]);
  }
}

TEST_CASE("an all-reduce is one kernel per replica that has a share, and one replica reduces few elements alone") {
  const std::size_t replicas = conformance::replicas_of_environment();
  dist::Mirrored<dist::DirectAllReduce, dist::Cuda> strategy{replicas};
  for (const std::size_t count : {1U, 16U, 1003U}) {
    CAPTURE(count);
    const auto values = strategy.buffer<float>({count}, "values");
    const auto before = support::gpu_counts();
    strategy.run([&](auto& replica) { replica.all_reduce(dist::sum, values.component(replica)); });
    const auto after = support::gpu_counts();
    if (support::gpus_are_counted) {
      CHECK(after.kernels - before.kernels == (count <= 16 ? 1 : replicas));
      CHECK(after.copies == before.copies);
    }
  }
}
