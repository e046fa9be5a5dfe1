#include <dist/device/cuda/work_times.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include <support/fake_cuda/machines.hpp>

using dist::Trace;
using dist::cuda::Stream;
using dist::cuda::WorkTimes;

namespace {

constexpr std::int64_t ms = 1'000'000;

void work_2_ms(const Stream& stream) {
  REQUIRE(cudaLaunchHostFunc(
              stream.ref().get(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{2}); }, nullptr) ==
          cudaSuccess);
}
const Trace::Event& event_of(const Trace& trace, std::string_view name) {
  for (const Trace::Event& event : trace.events())
    if (event.name() == name) return event;
  FAIL("no event ", std::string(name));
  return trace.events()[0];
}

}  // namespace

TEST_CASE("spans of a stream become events of its row, in the trace's clock") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    Trace trace;
    const Stream stream{0};
    WorkTimes times{trace, stream.ref(), "queue 0 of GPU 0"};
    const std::int64_t before = Trace::now();
    {
      const std::string gone = "run";  // names need not outlive `begin`
      times.begin(gone, 3);
      work_2_ms(stream);
      times.begin("all_reduce", 4);
      work_2_ms(stream);
      times.end();
      work_2_ms(stream);
      times.end();
    }
    stream.ref().wait();
    const std::int64_t after = Trace::now();
    times.harvest();
    REQUIRE(trace.events().size() == 2);
    const Trace::Event &run = event_of(trace, "run"), &reduce = event_of(trace, "all_reduce");
    CHECK(run.number == 3);
    CHECK(reduce.number == 4);
    CHECK(run.thread == reduce.thread);
    CHECK(run.thread > 4'194'304);
    CHECK(trace.chrome_json().find("\"args\":{\"name\":\"queue 0 of GPU 0\"}") != std::string::npos);
    constexpr std::int64_t doubt = 1 * ms;  // of the anchor, on busy processors
    CHECK(run.begin >= before - doubt);
    CHECK(run.end <= after + doubt);
    CHECK(run.end - run.begin >= 6 * ms - 1000);
    CHECK(reduce.end - reduce.begin >= 2 * ms - 1000);
    CHECK(reduce.begin - run.begin >= 2 * ms - 1000);
    CHECK(run.end - reduce.end >= 2 * ms - 1000);
  }
}

TEST_CASE("unfinished spans are recorded later, without waiting") {
  fake_cuda::Options lazy;
  lazy.schedule = fake_cuda::Schedule::lazy;
  fake_cuda::restart(lazy);
  Trace trace;
  const Stream stream{0};
  WorkTimes times{trace, stream.ref(), "queue"};
  const std::size_t waits = fake_cuda::counts().host_waits;
  times.begin("first", 0);
  for (int i = 0; i < 4; ++i) work_2_ms(stream);
  times.end();
  CHECK(trace.events().empty());
  stream.ref().wait();
  CHECK(trace.events().empty());
  times.begin("second", 0);
  work_2_ms(stream);
  work_2_ms(stream);
  times.end();  // also harvests the first span
  REQUIRE(trace.events().size() == 1);
  CHECK(trace.events()[0].name() == "first");
  stream.ref().wait();
  times.harvest();
  CHECK(trace.events().size() == 2);
  CHECK(fake_cuda::counts().host_waits == waits);
}

TEST_CASE("events are reused and freed") {
  fake_cuda::restart({});
  {
    Trace trace;
    const Stream stream{0};
    WorkTimes times{trace, stream.ref(), "queue"};
    times.begin("step", 0);
    times.end();
    const std::size_t events = fake_cuda::live().events;
    for (int step = 1; step <= 100; ++step) {
      times.begin("step", step);
      times.end();
    }
    CHECK(trace.events().size() == 101);
    CHECK(fake_cuda::live().events == events);
  }
  CHECK(fake_cuda::live() == fake_cuda::Live{});
}

TEST_CASE("the clocks are compared again after a second") {
  fake_cuda::restart({});
  Trace trace;
  const Stream stream{0};
  WorkTimes times{trace, stream.ref(), "queue"};
  std::this_thread::sleep_for(std::chrono::milliseconds{1010});
  fake_cuda::fail_call("cudaEventRecord", cudaErrorUnknown, 3);  // the first call not for the span
  times.begin("step", 0);
  times.end();
  REQUIRE(trace.events().size() == 1);
  const std::int64_t before = Trace::now();
  times.begin("step", 1);
  const std::int64_t after = Trace::now();
  times.end();
  REQUIRE(trace.events().size() == 2);
  CHECK(trace.events()[1].begin <= after + ms);
  CHECK(trace.events()[1].begin >= before - ms);
}

TEST_CASE("a GPU that fails to record events has no times, and the work continues") {
  fake_cuda::restart({});
  Trace trace;
  const Stream stream{0};
  fake_cuda::fail_call("cudaEventCreateWithFlags", cudaErrorMemoryAllocation);
  CHECK_THROWS_AS((WorkTimes{trace, stream.ref(), "queue"}), dist::OutOfMemory);
  WorkTimes times{trace, stream.ref(), "queue"};
  fake_cuda::fail_call("cudaEventRecord", cudaErrorUnknown);
  CHECK_THROWS_AS(times.begin("no begin", 0), dist::CudaError);
  times.begin("no end", 0);
  fake_cuda::fail_call("cudaEventRecord", cudaErrorUnknown);
  times.end();
  times.begin("no time", 0);
  fake_cuda::fail_call("cudaEventElapsedTime", cudaErrorUnknown);
  times.end();
  CHECK(trace.events().empty());
  times.begin("step", 0);
  times.end();
  REQUIRE(trace.events().size() == 1);
  CHECK(trace.events()[0].name() == "step");
}

TEST_CASE("times belong to one trace, even if another replaces it") {
  fake_cuda::restart({});
  Trace trace, other;
  const Stream stream{0};
  const WorkTimes times{trace, stream.ref(), "queue"};
  CHECK(times.records_to(&trace));
  CHECK_FALSE(times.records_to(&other));
  CHECK_FALSE(times.records_to(nullptr));
}
