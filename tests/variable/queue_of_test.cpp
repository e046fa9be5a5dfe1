#include <dist/variable/queue_of.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

#include <doctest/doctest.h>
#include <support/guarded_device.hpp>

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("work uses the queue of the context, or a host queue for host memory") {
  dist::OneDevice<testing::GuardedDevice> strategy;
  strategy.run([](auto& replica) {
    CHECK(std::is_same_v<decltype(dist::detail::queue_of<testing::GuardedDevice>(replica)),
                         testing::GuardedDevice::Queue>);
    CHECK(std::is_same_v<decltype(dist::detail::queue_of<dist::Cpu>(replica)), dist::Cpu::Queue>);
  });
  const auto scope = strategy.scope();
  CHECK(std::is_same_v<decltype(dist::detail::queue_of<testing::GuardedDevice>(scope, 0)),
                       testing::GuardedDevice::Queue>);
  CHECK(std::is_same_v<decltype(dist::detail::queue_of<dist::Cpu>(scope, 0)), dist::Cpu::Queue>);
}

TEST_CASE("copy_and_wait returns after the copy") {
  const testing::GuardedDevice::Queues queues{std::array<std::size_t, 1>{}};
  testing::GuardedDevice::Memory memory{std::array<std::size_t, 1>{}};
  const testing::GuardedDevice::Span<int> there{reinterpret_cast<int*>(memory.at(0, memory.allocate(12))), 3};
  int numbers[3] = {4, 5, 6};
  dist::detail::copy_and_wait(queues[0], std::span<const int>{numbers}, there);
  numbers[1] = 0;
  dist::detail::copy_and_wait(queues[0], there, std::span<int>{numbers});
  CHECK(numbers[1] == 5);
}

TEST_CASE("host copies are the copies of a variable, or snapshots of them") {
  const auto check = [](auto& strategy, std::size_t copies) {
    auto variable = strategy.template variable<float>({5}, dist::Tensor<float>{{5}, {1, 2, 3, 4, 5}});
    const auto scope = strategy.scope();
    const dist::detail::HostCopies all{variable, scope};
    for (std::size_t copy = 0; copy < copies; ++copy) {
      REQUIRE(all[copy].size() == 5);
      CHECK(all[copy][0] == 1);
      CHECK(all[copy][4] == 5);
    }
    return all[0].data() == variable.copy(scope, 0).data();
  };
  Mirrored mirrored(3);
  CHECK(check(mirrored, 3));
  dist::CentralStorage<dist::Cpu> central(2);
  CHECK(check(central, 1));
  dist::OneDevice<testing::GuardedDevice> guarded;
  CHECK(!check(guarded, 1));
}
