// HierarchicalCopyAllReduce of GPU memory, with replicas that share GPUs, is bit-identical to replicas on the host.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/policies.cuh>

#include <cstddef>
#include <optional>

#include <dist/core/float16.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>
#include <support/collectives_of_devices.hpp>

using Policy = dist::HierarchicalCopyAllReduce;

TEST_CASE_TEMPLATE("reductions in GPU memory are bit-identical to host memory (spec H06)", T, float, dist::BFloat16) {
  const std::size_t replicas = conformance::replicas_of_environment();
  for (const std::size_t count : {5U, 1003U}) {
    CAPTURE(count);
    const auto expected = testing::reduce<T, Policy, dist::Cpu>(replicas, count);
    const auto reduced = testing::reduce<T, Policy, dist::Cuda>(replicas, count);
    CHECK(reduced == expected);
    for (const auto& of_replica : reduced) CHECK(of_replica == reduced[0]);
  }
}

TEST_CASE("scratch memory stays allocated until no GPU uses it") {
  std::optional<dist::Mirrored<Policy, dist::Cuda>> strategy{conformance::replicas_of_environment()};
  auto values = strategy->buffer<float>(dist::Shape{1003});
  strategy->run([&](auto& replica) {
    for (const std::size_t count : {5U, 400U, 1003U})  // grows each time
      for (std::size_t tensor = 0; tensor < replica.num_replicas_in_sync(); ++tensor)
        replica.all_reduce(dist::sum, values.component(replica).first(count));
  });
  strategy.reset();  // the values outlive it
}
