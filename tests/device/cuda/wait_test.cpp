#include <dist/device/cuda/wait.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>

#include <dist/device/cuda/device.cuh>
#include <support/fake_cuda/handles.hpp>
#include <support/fake_cuda/machines.hpp>
#include <support/what_throws.hpp>

using dist::cuda::Stream;
using std::chrono::milliseconds;

namespace {

/// Submits work that ends once `may_end` is true.
void put_slow_work(cudaStream_t stream, const bool& may_end) {
  fake_cuda::put_for_library(
      stream, "a slow kernel", [] {}, [&] { return may_end; });
}

}  // namespace

TEST_CASE("a wait returns when its work is done, whenever it runs") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const Stream stream{0};
    int ran = 0;
    for (int i = 0; i < 5; ++i)
      REQUIRE(cudaLaunchHostFunc(
                  stream.ref().get(), [](void* count) { ++*static_cast<int*>(count); }, &ran) == cudaSuccess);
    stream.ref().wait();
    CHECK(ran == 5);
  }
}

TEST_CASE("a wait for hung work times out and names the work") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  bool may_end = false;
  const Stream stream{1};
  put_slow_work(stream.ref().get(), may_end);
  const std::string late = support::what_throws<dist::DeadlineExceeded>([&] { stream.ref().wait(milliseconds{20}); });
  CHECK(late.find("a stream of GPU 1") != std::string::npos);
  CHECK(late.find("nvidia-smi") != std::string::npos);

  constexpr std::array<std::size_t, 2> both{0, 1};
  const dist::Cuda::Queues queues{both, milliseconds{20}};
  put_slow_work(queues[1].stream().get(), may_end);
  const std::string late_queue = support::what_throws<dist::DeadlineExceeded>([&] { queues[1].wait(); });
  CHECK(late_queue.find("queue 1 of GPU 1") != std::string::npos);
  may_end = true;
  queues[1].wait();
  stream.ref().wait(milliseconds{0});
}

TEST_CASE("pending copies to the host are cancelled when a wait times out") {
  fake_cuda::restart({});
  constexpr std::array<std::size_t, 1> one{0};
  const dist::Cuda::Queues queues{one, milliseconds{20}};
  dist::Cuda::Memory memory{one};
  const dist::Cuda::Span<int> there{reinterpret_cast<int*>(memory.at(0, memory.allocate(sizeof(int)))), 1};
  bool may_end = false;
  put_slow_work(queues[0].stream().get(), may_end);
  int here = 7;
  queues[0].copy(there, std::span<int>{&here, 1});
  CHECK_THROWS_AS(queues[0].wait(), dist::DeadlineExceeded);
  may_end = true;
  queues[0].wait();
  CHECK(here == 7);
  queues[0].copy(there, std::span<int>{&here, 1});
  queues[0].wait();
  CHECK(here == 0);
}
