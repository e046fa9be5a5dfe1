#include <dist/strategy/shared_copy_order.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <dist/device/cuda/device.cuh>
#include <support/apply.hpp>
#include <support/fake_cuda/machines.hpp>

using Order = dist::detail::SharedCopyOrder<dist::Cuda>;

TEST_CASE("work inside and outside replica functions is ordered on queues that share a copy") {
  for (fake_cuda::Options machine : fake_cuda::every_schedule()) {
    machine.devices = 2;
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const std::array<std::size_t, 3> devices{0, 1, 0};
    const dist::Cuda::Queues queues{devices};
    const auto memory = dist::cuda::Memory::on_host(devices);
    const std::size_t slice = memory->allocate(sizeof(std::int64_t));
    auto* const x = reinterpret_cast<std::int64_t*>(memory->at(0, slice));
    Order order{queues, 3};
    const auto put = [&](std::size_t queue, std::int64_t factor, std::int64_t term) {
      queues[queue].for_each({0, 1}, support::Apply<std::int64_t>{x, factor, term});
    };
    put(0, 1, 1);  // 1
    {
      const dist::detail::ReplicasAtWork at_work{order};
      put(2, 2, 1);  // 3
      {
        const dist::detail::ReplicasAtRest at_rest{order};
        put(0, 3, 0);  // 9
      }
      put(1, 2, -1);  // 17
    }
    put(0, 5, 0);  // 85
    std::int64_t value = 0;
    queues[0].copy(dist::DeviceSpan<const std::int64_t, dist::cuda::DeviceMemory>{x, 1}, std::span{&value, 1});
    CHECK(value == 85);
  }
  fake_cuda::restart({});
}

TEST_CASE("replicas with separate copies are not ordered") {
  dist::detail::NoSharedCopyOrder none{0, 3};
  const dist::detail::ReplicasAtWork at_work{none};
  const dist::detail::ReplicasAtRest at_rest{none};
  CHECK(sizeof none == 1);
}
