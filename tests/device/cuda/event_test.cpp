#include <dist/device/cuda/event.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <utility>

#include <dist/core/trace.hpp>
#include <support/fake_cuda/machines.hpp>

using dist::cuda::Event;
using dist::cuda::Stream;
using dist::cuda::TimedEvent;

TEST_CASE("an event orders streams, and is over when what it recorded is") {
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

TEST_CASE("timed events say how much later one was") {
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

TEST_CASE("an event is owned by one") {
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
