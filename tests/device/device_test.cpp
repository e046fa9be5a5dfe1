#include <dist/device/device.hpp>

#include <array>
#include <cstddef>
#include <span>

#include <conformance/device.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/cpu.hpp>

#include <doctest/doctest.h>
#include <support/guarded_device.hpp>

namespace {

struct WithoutProcessors : dist::Cpu {
  static std::vector<std::size_t> processors() { return {}; }
};
struct WithOtherQueue : dist::Cpu {
  struct Queue : dist::Cpu::Queue {
    struct Space {
      static constexpr bool host_accessible = false;
    };
  };
};
struct MemoryOfCount {
  explicit MemoryOfCount(std::size_t);
};
struct WithMemoryOfCount : dist::Cpu {
  using Memory = MemoryOfCount;
};
struct QueueWithoutEvents {
  using Space = dist::HostMemory;
  static void enter() {}
  static void wait() {}
  static bool is_done() { return true; }
};

}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(devices, testing::GuardedDevice);

TEST_CASE("a device provides everything for replicas, in one memory space") {
  CHECK(dist::Device<dist::Cpu>);
  CHECK(!dist::Device<int>);
  CHECK(!dist::Device<WithoutProcessors>);
  CHECK(!dist::Device<WithOtherQueue>);
  CHECK(!dist::Device<WithMemoryOfCount>);
}

TEST_CASE("a queue works, orders and waits") {
  CHECK(dist::Queue<dist::Cpu::Queue>);
  CHECK(!dist::Queue<QueueWithoutEvents>);
  CHECK(!dist::Queue<int>);
}

TEST_CASE("an asynchronous queue reports when all submitted work is done") {
  const testing::GuardedDevice::Queues queues{std::array<std::size_t, 1>{0}};
  const testing::GuardedDevice::Queue queue = queues[0];
  CHECK(queue.is_done());
  queue.for_each({0, 1}, dist::detail::TouchNothing{});
  CHECK(!queue.is_done());
  queue.wait();
  CHECK(queue.is_done());
}

TEST_CASE("the memory of replicas is made from their devices") {
  CHECK(dist::ReplicaMemory<dist::Arena>);
  CHECK(!dist::ReplicaMemory<MemoryOfCount>);
}
