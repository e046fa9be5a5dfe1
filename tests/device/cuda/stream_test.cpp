#include <dist/device/cuda/stream.hpp>

#include <doctest/doctest.h>

#include <support/fake_cuda/machine.hpp>
#include <support/fake_cuda/machines.hpp>
#include <support/what_throws.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include <dist/core/trace.hpp>

using dist::cuda::Stream;
using dist::cuda::StreamRef;

TEST_CASE("a stream has a single owner, and others refer to it") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  {
    Stream a{1};
    const StreamRef ref = a.ref();
    CHECK(ref.device() == 1);
    CHECK(fake_cuda::live().streams == 1);
    Stream b = std::move(a);
    CHECK(b.ref().get() == ref.get());
    Stream c{0};
    c = std::move(b);
    CHECK(c.ref().device() == 1);
    CHECK(fake_cuda::live().streams == 2);
    c.ref().wait();
  }
  CHECK(fake_cuda::live().streams == 0);
  const cudaStream_t released = Stream{0}.release();
  CHECK(fake_cuda::live().streams == 1);
  { const Stream again = Stream::from_native_handle(0, released); }
  CHECK(fake_cuda::live().streams == 0);
  static_assert(!std::is_constructible_v<StreamRef, int, std::nullptr_t>);
  static_assert(!std::is_copy_constructible_v<Stream>);
}

TEST_CASE("a stream reports when all submitted work is done") {
  fake_cuda::Options lazy;
  lazy.schedule = fake_cuda::Schedule::lazy;
  fake_cuda::restart(lazy);
  const Stream stream{0};
  CHECK(stream.ref().is_done());
  int ran = 0;
  for (int i = 0; i < 2; ++i)
    REQUIRE(cudaLaunchHostFunc(
                stream.ref().get(), [](void* count) { ++*static_cast<int*>(count); }, &ran) == cudaSuccess);
  CHECK_FALSE(stream.ref().is_done());
  stream.ref().wait();
  CHECK(stream.ref().is_done());
  CHECK(ran == 2);
  fake_cuda::fail_call("cudaStreamQuery", cudaErrorLaunchFailure);
  CHECK_THROWS_AS(static_cast<void>(stream.ref().is_done()), dist::CudaError);
}

TEST_CASE("a stream's error names the stream's GPU, not the thread's") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  const Stream stream{1};
  const auto refused = [&](auto call) {
    fake_cuda::fail_call("cudaStreamQuery", cudaErrorInvalidValue);
    return support::what_throws<dist::CudaError>(call).find(", on GPU 1 in ") != std::string::npos;
  };
  CHECK(refused([&] { static_cast<void>(stream.ref().is_done()); }));
  CHECK(refused([&] { static_cast<void>(stream.ref().is_done()); }));
}

TEST_CASE("errors when creating or waiting for a stream are thrown, errors when destroying it are ignored") {
  fake_cuda::restart({});
  fake_cuda::fail_call("cudaStreamCreateWithFlags", cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(Stream{0}, dist::OutOfMemory);
  const Stream stream{0};
  fake_cuda::fail_call("cudaStreamQuery", cudaErrorLaunchFailure);
  CHECK_THROWS_AS(stream.ref().wait(), dist::CudaError);
  fake_cuda::fail_call("cudaStreamDestroy", cudaErrorLaunchFailure);
  { const Stream left{0}; }
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

using dist::cuda::Event;
using dist::cuda::TimedEvent;

TEST_CASE("an event orders streams, and is over when the recorded work is") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule(2)) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const Stream a{0}, b{1};
    Event event{0};
    CHECK(event.is_over());
    int ran = 0;
    REQUIRE(cudaLaunchHostFunc(
                a.ref().get(), [](void* count) { *static_cast<int*>(count) = 1; }, &ran) == cudaSuccess);
    event.record(a.ref());
    event.precede(b.ref());
    b.ref().wait();
    CHECK(ran == 1);
    CHECK(event.is_over());
    if (machine.schedule != fake_cuda::Schedule::lazy) continue;
    for (int i = 0; i < 2; ++i)
      REQUIRE(cudaLaunchHostFunc(
                  a.ref().get(), [](void* count) { ++*static_cast<int*>(count); }, &ran) == cudaSuccess);
    event.record(a.ref());
    CHECK_FALSE(event.is_over());
    CHECK(event.is_over());
  }
}

TEST_CASE("timed events measure the time between them") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const Stream stream{0};
    TimedEvent begin{0}, end{0};
    const std::int64_t before = dist::Trace::now();
    begin.record(stream.ref());
    REQUIRE(cudaLaunchHostFunc(
                stream.ref().get(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{2}); },
                nullptr) == cudaSuccess);
    end.record(stream.ref());
    stream.ref().wait();
    CHECK(end.since(begin) >= std::chrono::milliseconds{2});
    CHECK(begin.since(end) == -end.since(begin));
    TimedEvent after{0};
    after.record(stream.ref());
    CHECK(after.since(begin).count() <= dist::Trace::now() - before);
  }
  const TimedEvent never{0};
  CHECK_THROWS_AS(static_cast<void>(never.since(never)), dist::CudaError);
}

TEST_CASE("an event has a single owner") {
  fake_cuda::restart({});
  {
    Event a{0};
    const cudaEvent_t handle = a.get();
    Event b = std::move(a);
    CHECK(b.get() == handle);
    Event c{0};
    c = std::move(b);
    CHECK(c.get() == handle);
  }
  CHECK(fake_cuda::live().events == 0);
  static_assert(!std::is_copy_constructible_v<Event>);
  Event event{0};
  fake_cuda::fail_call("cudaEventQuery", cudaErrorLaunchFailure);
  CHECK_THROWS_AS(static_cast<void>(event.is_over()), dist::CudaError);
}
