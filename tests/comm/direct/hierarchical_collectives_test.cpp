// On GuardedDevice, whose memory the host cannot access and whose queues run only while a thread waits for them.
#include <dist/comm/direct/hierarchical_collectives.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/comm/communication_options.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/collectives_of_devices.hpp>
#include <support/guarded_policies.hpp>

using InGroups = dist::Mirrored<dist::HierarchicalCopyAllReduce, testing::GuardedDevice>;

TEST_CASE_TEMPLATE("reductions in device memory are bit-identical to host memory", Policy, dist::ReductionToOneDevice,
                   dist::HierarchicalCopyAllReduce) {
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U})
    for (const std::size_t count : {5U, 1003U}) {
      CAPTURE(replicas);
      CAPTURE(count);
      CHECK(testing::reduce<float, Policy, testing::GuardedDevice>(replicas, count) ==
            testing::reduce<float, Policy, dist::Cpu>(replicas, count));
    }
}

TEST_CASE_TEMPLATE("reduce_scatter gives its result only to replica 0 (spec H04)", Policy, dist::ReductionToOneDevice,
                   dist::HierarchicalCopyAllReduce) {
  dist::Mirrored<Policy, testing::GuardedDevice> strategy{3};
  auto values = strategy.template buffer<float>(dist::Shape{100});
  auto kept = strategy.template buffer<float>(dist::Shape{100});
  strategy.run([&](auto& replica) {
    const bool first = replica.replica_id().index() == 0;
    replica.queue().fill(values.component(replica), 1.0F);
    const dist::IndexRange share =
        replica.reduce_scatter(dist::sum, values.component(replica), kept.component(replica));
    CHECK(share == dist::IndexRange{0, first ? std::size_t{100} : 0});
    std::vector<float> seen(100);
    replica.queue().copy(kept.component(replica), std::span<float>{seen});
    replica.queue().wait();
    CHECK(seen == std::vector<float>(100, first ? 3.0F : 0.0F));
  });
}

TEST_CASE("one replica of each group allocates scratch memory, and the next tensor uses the next replica (spec H06)") {
  InGroups strategy{4};
  auto values = strategy.buffer<float>(dist::Shape{10});
  const std::size_t before = testing::GuardedBuffer::made;
  for (const std::size_t tensors : {1U, 2U, 5U}) {
    strategy.run([&](auto& replica) {
      for (std::size_t tensor = 0; tensor < tensors; ++tensor) replica.all_reduce(dist::sum, values.component(replica));
      replica.queue().wait();
    });
    CHECK(testing::GuardedBuffer::made - before == (tensors == 1 ? 2 : 4));
  }
}

TEST_CASE("a mismatch and a timeout for one call on one replica do not affect later calls") {
  InGroups strategy{4};
  auto values = strategy.buffer<float>(dist::Shape{10});
  strategy.run([&](auto& replica) {
    const auto mine = values.component(replica);
    replica.queue().fill(mine, 1.0F);
    CHECK_THROWS_AS(replica.all_reduce(dist::sum, mine.first(replica.replica_id().index() == 0 ? 8 : 4)),
                    dist::CollectiveMismatch);
    dist::CommunicationOptions options;  // for one call on one replica
    if (replica.replica_id().index() == 2) options.timeout = std::chrono::seconds{60};
    for (int tensor = 0; tensor < 3; ++tensor) replica.all_reduce(dist::sum, mine, options);
    std::vector<float> seen(10);
    replica.queue().copy(mine, std::span<float>{seen});
    replica.queue().wait();
    CHECK(seen == std::vector<float>(10, 64.0F));
  });
}
