#include <dist/device/cuda/queue.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/strategy/one_device.hpp>
#include <support/fake_cuda/handles.hpp>
#include <support/fake_cuda/machines.hpp>
#include <support/stderr_of.hpp>

using dist::Cuda;

namespace {

constexpr std::array<std::size_t, 1> one_device{0};

struct Ones {
  DIST_HD dist::BFloat16 operator()(std::size_t) const { return dist::BFloat16{1.0F}; }
};
struct Increment {
  int* values;
  DIST_HD void operator()(std::size_t i) const { ++values[i]; }
};
struct WriteTo {
  int* values;
  DIST_HD void operator()(std::size_t i) const { values[i + 1] = 1; }
};

}  // namespace

TEST_CASE("copies larger than the staging buffers are split") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    if (machine.seed > 1) continue;
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const Cuda::Queues queues{one_device};
    Cuda::Memory memory{one_device};
    const std::size_t count = dist::cuda::Staging::most / sizeof(int) * 5 / 2;
    const Cuda::Span<int> there{reinterpret_cast<int*>(memory.at(0, memory.allocate(count * sizeof(int)))), count};
    std::vector<int> values(count), back(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i);
    queues[0].copy(std::span<const int>{values}, there);
    queues[0].for_each({count - 10, count}, Increment{there.data()});
    queues[0].copy(there, std::span<int>{back});
    queues[0].wait();
    for (std::size_t i = count - 10; i < count; ++i) ++values[i];
    CHECK(back == values);
  }
}

TEST_CASE("16-bit values are combined as floats") {
  fake_cuda::restart({});
  const Cuda::Queues queues{one_device};
  CHECK(static_cast<float>(queues[0].transform_reduce(dist::sum, {0, 1000}, Ones{})) == 1000.0F);
}

TEST_CASE("an asynchronous value arrives by the end of its queue, and is lost after a failed wait") {
  fake_cuda::restart({});
  std::optional<decltype(std::declval<Cuda::Queue>().start_transform_reduce(dist::sum, {}, Ones{}))> late;
  {
    const Cuda::Queues queues{one_device};
    late = queues[0].start_transform_reduce(dist::sum, {0, 10}, Ones{});
  }
  CHECK(late->is_done());
  CHECK(static_cast<float>(late->value()) == 10.0F);
  const Cuda::Queues queues{one_device};
  const auto before = queues[0].start_transform_reduce(dist::sum, {0, 10}, Ones{});
  const std::uint64_t since = queues[0].copies();
  const auto lost = queues[0].start_transform_reduce(dist::sum, {0, 10}, Ones{});
  queues[0].give_up_copies(since);
  CHECK_THROWS_AS(static_cast<void>(lost.value()), dist::InvalidArgument);
  CHECK(static_cast<float>(before.value()) == 10.0F);
}

TEST_CASE("a value lost by a failed wait rethrows that error") {
  fake_cuda::restart({});
  const Cuda::Queues queues{one_device};
  const auto lost = queues[0].start_transform_reduce(dist::sum, {0, 10}, Ones{});
  fake_cuda::fail_call("cudaStreamQuery", cudaErrorLaunchFailure);
  CHECK_THROWS_AS(queues[0].wait(), dist::GpuLost);
  for (int again = 0; again < 2; ++again) CHECK_THROWS_AS(static_cast<void>(lost.value()), dist::GpuLost);
}

TEST_CASE("memory in use by hung work is leaked, without waits after the deadline") {
  fake_cuda::restart({});
  bool may_end = false;
  {
    const Cuda::Queues queues{one_device, std::chrono::milliseconds{50}};
    Cuda::Memory memory{one_device};
    const std::size_t slice = memory.allocate(100);
    static_cast<void>(memory.allocate(100));
    const std::size_t before = fake_cuda::live().device_allocations;
    fake_cuda::put_for_library(
        queues[0].stream().get(), "a kernel that does not end", [] {}, [&] { return may_end; });
    CHECK_THROWS_AS(queues[0].wait(), dist::DeadlineExceeded);
    dist::cuda::InputRing ring{queues[0], 1};
    static_cast<void>(ring.prepare(4));  // an unused slot is free at once, independent of the queue
    memory.release(slice, 100);
    CHECK(fake_cuda::live().device_allocations == before + 1);  // the ring's
    may_end = true;
    queues[0].wait();  // it was only slow
  }
  CHECK(fake_cuda::live().device_allocations == 1);  // the leaked memory
  fake_cuda::restart({});
}

TEST_CASE("copies to destroyed destinations are cancelled at the queue's end and after an exception") {
  fake_cuda::restart({});
  std::int64_t place = -1;
  const dist::cuda::DeviceBuffer there{0, sizeof place};
  const Cuda::Span<const std::int64_t> from{reinterpret_cast<const std::int64_t*>(there.data()), 1};
  {
    const Cuda::Queues queues{one_device};
    queues[0].fill(Cuda::Span<std::int64_t>{reinterpret_cast<std::int64_t*>(there.data()), 1}, 5);
    queues[0].copy(from, std::span{&place, 1});
  }
  CHECK(place == -1);
  dist::OneDevice<Cuda> strategy;
  std::int64_t kept = -1;
  strategy.queues()[0].copy(from, std::span{&kept, 1});
  CHECK_THROWS_AS(strategy.run([&](auto& replica) {
    replica.queue().copy(from, std::span{&place, 1});
    throw std::runtime_error("the place goes");
  }),
                  std::runtime_error);
  strategy.queues()[0].wait();
  CHECK(place == -1);
  CHECK(kept == 5);
}

TEST_CASE("a queue's destructor waits for its work") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    {
      const Cuda::Queues queues{one_device};
      Cuda::Memory memory{one_device};
      const Cuda::Span<float> to{reinterpret_cast<float*>(memory.at(0, memory.allocate(400))), 100};
      const std::vector<float> ones(100, 1.0F);
      queues[0].copy(std::span<const float>{ones}, to);
      queues[0].fill(to, 2.0F);
    }
    CHECK(fake_cuda::live() == fake_cuda::Live{});
    fake_cuda::restart(machine);
  }
}

TEST_CASE("a watch is called in every wait, at its end, and on a timeout") {
  struct Watcher {
    int looks = 0, fails_at = 0, times_up = 0;
  };
  const auto watch = [](Watcher& watcher) {
    return dist::cuda::QueueWatch{&watcher,
                                  [](void* self) {
                                    auto& mine = *static_cast<Watcher*>(self);
                                    if (++mine.looks == mine.fails_at)
                                      throw dist::InvalidArgument("it", "failed", "so");
                                  },
                                  [](void* self) noexcept { ++static_cast<Watcher*>(self)->times_up; }};
  };
  fake_cuda::Options machine;
  machine.patience_ms = 20'000;
  fake_cuda::restart(machine);
  const Cuda::Queues queues{one_device, std::chrono::milliseconds{20}};
  Cuda::InputRing ring{queues[0], 1};
  Watcher watcher;
  queues[0].set_watch(watch(watcher));
  queues[0].wait();  // without work
  CHECK(watcher.looks == 1);
  static_cast<void>(ring.prepare(4));
  CHECK(watcher.looks == 3);
  watcher.fails_at = 4;
  CHECK_THROWS_AS(queues[0].wait(), dist::InvalidArgument);
  CHECK(watcher.times_up == 0);
  bool may_end = false;
  fake_cuda::put_for_library(
      queues[0].stream().get(), "a slow kernel", [] {}, [&] { return may_end; });
  CHECK_THROWS_AS(queues[0].wait(), dist::DeadlineExceeded);
  CHECK(watcher.times_up == 1);
  may_end = true;
  queues[0].set_watch({});
  queues[0].wait();
}

TEST_CASE("out-of-bounds access of a kernel is detected") {
  fake_cuda::restart({});
  const Cuda::Queues queues{one_device};
  Cuda::Memory memory{one_device};
  auto* const values = reinterpret_cast<int*>(memory.at(0, memory.allocate(64 * sizeof(int))));
  const auto ending = testing::stderr_of([&] {
    queues[0].for_each({0, 64}, WriteTo{values});
    queues[0].wait();
  });
  CHECK(!ending.stderr_text.empty());
}

TEST_CASE("placement without GPUs throws") {
  fake_cuda::Options none;
  none.devices = 0;
  fake_cuda::restart(none);
  CHECK(Cuda::count() == 0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(Cuda::placement(0).empty());
  CHECK_THROWS_AS(static_cast<void>(Cuda::placement(1)), dist::NoGpu);
  for (const cudaError_t error : {cudaErrorInsufficientDriver, cudaErrorStubLibrary}) {
    fake_cuda::fail_call("cudaGetDeviceCount", error);
    CHECK(Cuda::count() == 0);
  }
  fake_cuda::fail_call("cudaGetDeviceCount", cudaErrorUnknown);
  CHECK_THROWS_AS(static_cast<void>(Cuda::count()), dist::CudaError);
}
