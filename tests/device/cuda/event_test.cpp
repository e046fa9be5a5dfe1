#include <dist/device/cuda/event.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <utility>

#include <support/fake_cuda/machines.hpp>

using dist::cuda::Event;
using dist::cuda::Stream;

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
