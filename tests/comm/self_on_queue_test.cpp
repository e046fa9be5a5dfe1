#include <dist/comm/self_on_queue.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/core/reduce_op.hpp>

#include <doctest/doctest.h>
#include <support/guarded_device.hpp>

using testing::GuardedDevice;
using Alone = dist::SelfOnQueue<GuardedDevice::Queue>;

TEST_CASE("one replica on a device has all collectives, on host and device memory") {
  CHECK(dist::Collectives<Alone>);
  CHECK(dist::CollectivesOfOne<Alone>);
  CHECK(dist::ReducesMemoryIn<Alone, float, dist::Sum, testing::GuardedMemory>);
  CHECK(!dist::ReducesMemoryIn<dist::SelfCollectives, float, dist::Sum, testing::GuardedMemory>);
}

TEST_CASE("updates of device memory are enqueued, and other collectives change nothing") {
  const GuardedDevice::Queues queues{std::array<std::size_t, 1>{}};
  GuardedDevice::Memory memory{std::array<std::size_t, 1>{}};
  const auto queue = queues[0];
  const Alone alone{queue};
  const auto slice = [&](float value) {
    const std::size_t count = 3;
    const GuardedDevice::Span<float> made{reinterpret_cast<float*>(memory.at(0, memory.allocate(12))), count};
    queue.fill(made, value);
    return made;
  };
  const auto gradient = slice(2);
  const auto weights = slice(10);
  alone.all_reduce(dist::sum, gradient);
  alone.broadcast(0, gradient);
  alone.reduce_and_apply(
      dist::mean, GuardedDevice::Span<const float>{gradient}, weights,
      [](std::size_t i, float weight, float slope) { return weight - slope * static_cast<float>(i); });
  std::vector<float> seen(3);
  queue.copy(weights, std::span<float>{seen});
  queue.wait();
  CHECK(seen == std::vector<float>{10, 8, 6});
  alone.all_reduce(dist::sum, std::span<float>{seen});
  CHECK(seen[1] == 8);
  alone.with_timeout({}).reduce_and_apply(dist::sum, GuardedDevice::Span<const float>{gradient}, weights,
                                          [](std::size_t, float, float slope) { return slope; });
  queue.copy(weights, std::span<float>{seen});
  queue.wait();
  CHECK(seen == std::vector<float>{2, 2, 2});
}
