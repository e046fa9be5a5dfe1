#include "gpu.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <support/fake_cuda/handles.hpp>
#include <support/fake_cuda/machines.hpp>
#include <support/sanitizers.hpp>
#include <support/stderr_of.hpp>

using fake_cuda::every_schedule;
using testing::stderr_of;

namespace {

fake_cuda::Options machine_of(fake_cuda::Schedule schedule, std::uint64_t seed = 1) {
  fake_cuda::Options options;
  options.schedule = schedule;
  options.seed = seed;
  return options;
}

/// A host function that appends `digit` to the digits of `log`. Streams may run it at any time.
struct Digit {
  std::atomic<long>* log;
  long digit;
};
void append(void* data) {
  const Digit& digit = *static_cast<Digit*>(data);
  digit.log->store(digit.log->load(std::memory_order_relaxed) * 10 + digit.digit, std::memory_order_relaxed);
}
void put(Digit& digit, cudaStream_t stream) { REQUIRE(cudaLaunchHostFunc(stream, &append, &digit) == cudaSuccess); }

__global__ void add(int* p, int value) { *p += value; }
__global__ void twice(int* p) { *p *= 2; }
__global__ void take(unsigned) {}

void sleep_2_ms(void*) { std::this_thread::sleep_for(std::chrono::milliseconds{2}); }
cudaEvent_t timed_event(int device = 0) {
  cudaEvent_t made = nullptr;
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&made, cudaEventDefault) == cudaSuccess);
  return made;
}

}  // namespace

TEST_CASE("a stream keeps its order in every schedule") {
  for (const fake_cuda::Options& machine : every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const cudaStream_t stream = gpu::stream();
    int* const p = gpu::memory<int>(1);
    REQUIRE(cudaMemsetAsync(p, 0, 4, stream) == cudaSuccess);
    gpu::launch(stream, dim3{1}, dim3{1}, &add, p, 1);
    gpu::launch(stream, dim3{1}, dim3{1}, &twice, p);
    gpu::launch(stream, dim3{1}, dim3{1}, &add, p, 3);
    CHECK(gpu::value(p, stream) == 5);
  }
}

TEST_CASE("the eager schedule finishes work before a call returns, and the lazy one only when the host waits for it") {
  std::atomic<long> log = 0;
  Digit digits[] = {{&log, 1}, {&log, 2}, {&log, 3}, {&log, 4}};
  for (const bool eager : {true, false}) {
    log = 0;
    fake_cuda::restart(machine_of(eager ? fake_cuda::Schedule::eager : fake_cuda::Schedule::lazy));
    const cudaStream_t a = gpu::stream(), b = gpu::stream();
    const cudaEvent_t first = gpu::event();
    put(digits[0], a);
    gpu::record(first, a);
    put(digits[1], a);
    put(digits[2], b);
    CHECK(log.load() == (eager ? 123 : 0));
    gpu::wait_for(first, b);
    put(digits[3], b);
    CHECK(log.load() == (eager ? 1234 : 0));
    gpu::synchronize(b);
    CHECK(log.load() == (eager ? 1234 : 134));
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(log.load() == (eager ? 1234 : 1342));
  }
}

TEST_CASE("the random schedule produces every legal order, and the same order for the same seed") {
  const auto order_of = [](std::uint64_t seed) {
    std::atomic<long> log = 0;
    Digit digits[] = {{&log, 1}, {&log, 2}, {&log, 3}, {&log, 4}};
    fake_cuda::restart(machine_of(fake_cuda::Schedule::random, seed));
    const cudaStream_t a = gpu::stream(), b = gpu::stream();
    put(digits[0], a);
    put(digits[1], a);
    put(digits[2], b);
    put(digits[3], b);
    gpu::synchronize(a);
    gpu::synchronize(b);
    return log.load();
  };
  std::set<long> orders;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) orders.insert(order_of(seed));
  CHECK(orders == std::set<long>{1234, 1324, 1342, 3124, 3142, 3412});
  CHECK(order_of(7) == order_of(7));
}

TEST_CASE("an event covers the work before its record, also on other GPUs") {
  for (const fake_cuda::Options& machine : every_schedule(2)) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const cudaStream_t a = gpu::stream(0), b = gpu::stream(1);
    const cudaEvent_t done = gpu::event(0);
    std::atomic<long> log = 0;
    Digit digits[] = {{&log, 1}, {&log, 2}, {&log, 3}};
    gpu::wait_for(done, b);  // never recorded: does not wait
    put(digits[0], a);
    gpu::record(done, a);
    gpu::wait_for(done, b);
    put(digits[1], b);
    gpu::synchronize(b);
    CHECK(log.load() == 12);
    CHECK(cudaEventSynchronize(done) == cudaSuccess);
    CHECK(cudaEventRecord(done, b) == cudaErrorInvalidResourceHandle);
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, done, done) == cudaErrorInvalidResourceHandle);
  }
}

TEST_CASE("the time between events is the time of the work between them") {
  for (const fake_cuda::Options& machine : every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const cudaStream_t stream = gpu::stream();
    const cudaEvent_t begin = timed_event(), middle = timed_event(), end = timed_event();
    const auto since = std::chrono::steady_clock::now();
    gpu::record(begin, stream);
    REQUIRE(cudaLaunchHostFunc(stream, &sleep_2_ms, nullptr) == cudaSuccess);
    gpu::record(middle, stream);
    REQUIRE(cudaLaunchHostFunc(stream, &sleep_2_ms, nullptr) == cudaSuccess);
    REQUIRE(cudaLaunchHostFunc(stream, &sleep_2_ms, nullptr) == cudaSuccess);
    gpu::record(end, stream);
    gpu::synchronize(stream);
    const std::chrono::duration<float, std::milli> passed = std::chrono::steady_clock::now() - since;
    float first = 0, second = 0, whole = 0, back = 0;
    CHECK(cudaEventElapsedTime(&first, begin, middle) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&second, middle, end) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&whole, begin, end) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&back, end, begin) == cudaSuccess);
    CHECK(first >= 2);
    CHECK(second >= 4);
    CHECK(whole == doctest::Approx(first + second));
    CHECK(whole <= passed.count());
    CHECK(back == -whole);
    // An event without work before it is complete when it is recorded.
    const cudaStream_t idle = gpu::stream();
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    gpu::record(begin, idle);
    CHECK(cudaEventElapsedTime(&first, end, begin) == cudaSuccess);
    CHECK(first >= 2);
  }
}

TEST_CASE("elapsed time is an error for events that are incomplete or do not measure time") {
  fake_cuda::restart(machine_of(fake_cuda::Schedule::lazy));
  const cudaStream_t stream = gpu::stream();
  const cudaEvent_t begin = timed_event(), end = timed_event(), untimed = gpu::event();
  float milliseconds = -1;
  const auto elapsed = [&](cudaEvent_t from, cudaEvent_t to) { return cudaEventElapsedTime(&milliseconds, from, to); };
  gpu::record(begin, stream);
  CHECK(elapsed(begin, end) == cudaErrorInvalidResourceHandle);  // never recorded
  for (int i = 0; i < 3; ++i) REQUIRE(cudaLaunchHostFunc(stream, &sleep_2_ms, nullptr) == cudaSuccess);
  gpu::record(end, stream);
  gpu::record(untimed, stream);
  CHECK(elapsed(begin, end) == cudaErrorNotReady);
  gpu::synchronize(stream);
  CHECK(elapsed(begin, untimed) == cudaErrorInvalidResourceHandle);
  CHECK(elapsed(untimed, end) == cudaErrorInvalidResourceHandle);
  CHECK(milliseconds == -1);
  CHECK(elapsed(begin, end) == cudaSuccess);
  CHECK(milliseconds >= 6);
}

TEST_CASE("elapsed time is an error for events of two GPUs or of a capture") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  const cudaStream_t a = gpu::stream(0), b = gpu::stream(1);
  const cudaEvent_t here = timed_event(0), there = timed_event(1), captured = timed_event(0);
  gpu::record(here, a);
  gpu::record(there, b);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, here, there) == cudaErrorInvalidResourceHandle);
  for (const bool spoils : {true, false}) {
    REQUIRE(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    gpu::record(captured, a);
    if (spoils) CHECK(cudaEventElapsedTime(&milliseconds, here, captured) == cudaErrorCapturedEvent);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(a, &graph) == (spoils ? cudaErrorStreamCaptureInvalidated : cudaSuccess));
    CHECK(cudaEventElapsedTime(&milliseconds, here, captured) == cudaErrorInvalidResourceHandle);
    if (graph != nullptr) REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  }
}

TEST_CASE("repeated polling ends") {
  for (const fake_cuda::Options& machine : every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const cudaStream_t stream = gpu::stream();
    const cudaEvent_t event = gpu::event();
    int* const p = gpu::memory<int>(1);
    for (int i = 0; i < 5; ++i) gpu::launch(stream, dim3{1}, dim3{1}, &add, p, 1);
    gpu::record(event, stream);
    int polls = 0;
    while (cudaEventQuery(event) == cudaErrorNotReady && polls < 1000) ++polls;
    CHECK(polls < 1000);
    if (machine.schedule == fake_cuda::Schedule::lazy) CHECK(polls == 4);
    gpu::launch(stream, dim3{1}, dim3{1}, &add, p, 1);
    polls = 0;
    while (cudaStreamQuery(stream) == cudaErrorNotReady && polls < 1000) ++polls;
    CHECK(polls < 1000);
    CHECK(cudaGetLastError() == cudaSuccess);  // cudaErrorNotReady is not kept as an error
  }
}

TEST_CASE("work outside the program's own streams is rejected") {
  fake_cuda::restart({});
  const cudaStream_t stream = gpu::stream();
  const cudaEvent_t event = gpu::event();
  int* const p = gpu::memory<int>(1);
  CHECK(stderr_of([&] {
          static_cast<void>(cudaMemsetAsync(p, 0, 4, nullptr));
        }).says("cudaMemsetAsync on the legacy stream, which waits for all others: give it a stream of its own"));
  CHECK(stderr_of([&] { static_cast<void>(cudaEventRecord(event, nullptr)); }).says("cudaEventRecord on the legacy"));
  CHECK(stderr_of([&] {
          static_cast<void>(cudaStreamSynchronize(cudaStreamPerThread));
        }).says("cudaStreamSynchronize on the legacy stream"));
  CHECK(stderr_of([&] { static_cast<void>(cudaMemcpy(p, p, 4, cudaMemcpyDefault)); }).says("cudaMemcpy waits for all"));
  CHECK(stderr_of([&] { static_cast<void>(cudaMemset(p, 0, 4)); }).says("cudaMemset is on the legacy stream"));
  CHECK(stderr_of([&] {
          cudaStream_t blocking = nullptr;
          static_cast<void>(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault));
        }).says("a stream that waits for the legacy stream"));
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cudaEventDestroy(event) == cudaSuccess);
  CHECK(stderr_of([&] { gpu::synchronize(stream); }).says("cudaStreamSynchronize on a stream that does not exist"));
  CHECK(stderr_of([&] { static_cast<void>(cudaEventQuery(event)); }).says("cudaEventQuery of an event that does not"));
}

TEST_CASE("a destroyed stream finishes its work") {
  fake_cuda::restart(machine_of(fake_cuda::Schedule::lazy));
  const cudaStream_t a = gpu::stream(), b = gpu::stream();
  const cudaEvent_t event = gpu::event();
  std::atomic<long> log = 0;
  Digit digit{&log, 1};
  put(digit, a);
  gpu::record(event, a);
  REQUIRE(cudaStreamDestroy(a) == cudaSuccess);
  gpu::wait_for(event, b);
  gpu::synchronize(b);
  CHECK(log.load() == 1);
}

TEST_CASE("a device-wide wait covers all work of the device") {
  fake_cuda::Options lazy = machine_of(fake_cuda::Schedule::lazy);
  lazy.devices = 2;
  fake_cuda::restart(lazy);
  std::atomic<long> log = 0;
  Digit digits[] = {{&log, 1}, {&log, 2}, {&log, 3}};
  const cudaStream_t a = gpu::stream(0), b = gpu::stream(0), other = gpu::stream(1);
  put(digits[0], a);
  put(digits[1], b);
  put(digits[2], other);
  REQUIRE(cudaStreamDestroy(a) == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(log.load() == 12);
  gpu::synchronize(other);
}

TEST_CASE("after a device-wide wait the host may use the results of streams, even of work that had finished before") {
  for (const fake_cuda::Options& machine : every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const cudaStream_t a = gpu::stream(), b = gpu::stream();
    int* const from = gpu::pinned<int>(2);
    int* const to = gpu::pinned<int>(2);
    from[0] = 1;
    from[1] = 2;
    int* const memory = gpu::memory<int>(2);
    gpu::copy(memory, from, 1, a);
    gpu::copy(to, memory, 1, a);
    gpu::copy(memory + 1, from + 1, 1, b);
    gpu::copy(to + 1, memory + 1, 1, b);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(to[0] == 1);
    CHECK(to[1] == 2);
    from[0] = from[1] = 0;
  }
}

TEST_CASE("host functions must not call CUDA or access GPU memory") {
  fake_cuda::restart({});
  const cudaStream_t stream = gpu::stream();
  int* const p = gpu::memory<int>(1);
  CHECK(stderr_of([&] {
          static_cast<void>(cudaLaunchHostFunc(
              stream, [](void* other) { static_cast<void>(cudaStreamSynchronize(static_cast<cudaStream_t>(other))); },
              stream));
        }).says("cudaStreamSynchronize is called from a kernel or a function of a stream"));
  CHECK(stderr_of([&] {
          static_cast<void>(cudaLaunchHostFunc(
              stream, [](void* memory) { *static_cast<volatile int*>(memory) = 1; }, p));
        }).says("'host function' of stream 1 on GPU 0 touched memory of GPU 0, byte 0 of 4"));
}

TEST_CASE("a wait that cannot end reports what each stream waits for") {
  for (const fake_cuda::Options& machine : every_schedule(2)) {
    CAPTURE(fake_cuda::to_string(machine));
    const auto ending = stderr_of([&] {
      fake_cuda::Options impatient = machine;
      impatient.patience_ms = 20;
      fake_cuda::restart(impatient);
      const cudaStream_t a = gpu::stream(0), b = gpu::stream(1);
      const cudaEvent_t event = gpu::event(0);
      fake_cuda::put_for_library(
          a, "all-reduce of rank 0", [] {}, [] { return false; });
      gpu::record(event, a);
      gpu::wait_for(event, b);
      REQUIRE(cudaSetDevice(1) == cudaSuccess);
      gpu::launch(b, dim3{1}, dim3{1}, &take, 1U);
      gpu::synchronize(b);
    });
    CHECK(ending.aborted);
    CHECK(
        ending.says("deadlock: the host waits for 'kernel (unsigned int)' of stream 2 on GPU 1, and nothing can run"));
    CHECK(ending.says("stream 1 of GPU 0: 'all-reduce of rank 0' waits for its peers"));
    CHECK(ending.says("stream 2 of GPU 1: 'wait for an event' waits for 'all-reduce of rank 0' of stream 1 on GPU 0"));
  }
}

TEST_CASE("ordered work is race-free in every schedule, and the thread sanitizer finds unordered work") {
  enum class Missing { nothing, wait_between_streams, wait_of_host, wait_before_reuse };
  for (const Missing missing :
       {Missing::nothing, Missing::wait_between_streams, Missing::wait_of_host, Missing::wait_before_reuse})
    for (const fake_cuda::Options& machine : every_schedule(2)) {
      CAPTURE(static_cast<int>(missing));
      CAPTURE(fake_cuda::to_string(machine));
      const auto ending = stderr_of([&] {
        fake_cuda::restart(machine);
        const cudaStream_t a = gpu::stream(0), b = gpu::stream(1);
        const cudaEvent_t set = gpu::event(0);
        int* const p = gpu::memory<int>(1, 0);
        int* const from = gpu::pinned<int>(1);
        int* const to = gpu::pinned<int>(1);
        *from = 5;
        *to = 0;
        REQUIRE(cudaSetDevice(1) == cudaSuccess);
        REQUIRE(cudaDeviceEnablePeerAccess(0, 0) == cudaSuccess);
        REQUIRE(cudaSetDevice(0) == cudaSuccess);
        gpu::copy(p, from, 1, a);
        gpu::launch(a, dim3{1}, dim3{1}, &add, p, 1);
        gpu::record(set, a);
        if (missing != Missing::wait_between_streams) gpu::wait_for(set, b);
        REQUIRE(cudaSetDevice(1) == cudaSuccess);
        gpu::launch(b, dim3{1}, dim3{1}, &twice, p);
        gpu::copy(to, p, 1, b);
        if (missing != Missing::wait_before_reuse) REQUIRE(cudaEventSynchronize(set) == cudaSuccess);
        *from = 0;
        if (missing != Missing::wait_of_host) gpu::synchronize(b);
        if (*to != 12) std::fputs("wrong value\n", stderr);
        fake_cuda::restart({});
      });
#ifdef DIST_TEST_THREAD_SANITIZER
      CHECK(ending.says("WARNING: ThreadSanitizer: data race") == (missing != Missing::nothing));
#endif
      if (missing == Missing::nothing) CHECK_FALSE(ending.says("wrong value"));
      if (missing == Missing::wait_of_host && machine.schedule == fake_cuda::Schedule::lazy)
        CHECK(ending.says("wrong value"));
    }
}
