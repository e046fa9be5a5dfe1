#include "gpu.hpp"

#include <cstddef>
#include <thread>

#include <support/fake_cuda/machines.hpp>
#include <support/stderr_of.hpp>

using fake_cuda::every_schedule;
using testing::stderr_of;

namespace {

__global__ void add(int* p, int value) { *p += value; }
__global__ void twice(int* p) { *p *= 2; }
__global__ void add_to(const int* from, int* to) { *to += *from; }

void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
  REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
}
cudaError_t end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  CHECK((graph != nullptr) == (error == cudaSuccess));
  if (graph != nullptr) REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  return error;
}

}  // namespace

TEST_CASE("a step on two streams becomes a graph, which runs once per launch") {
  for (const fake_cuda::Options& machine : every_schedule(2)) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const cudaStream_t a = gpu::stream(0), b = gpu::stream(1);
    const cudaEvent_t fork = gpu::event(0), join = gpu::event(1);
    int* const p = gpu::memory<int>(1, 0);
    int* const q = gpu::memory<int>(1, 1);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(p, 0, 4, a) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(q, 0, 4, b) == cudaSuccess);
    gpu::synchronize(b);

    begin(a);
    gpu::launch(a, dim3{1}, dim3{1}, &twice, p);
    gpu::record(fork, a);
    gpu::wait_for(fork, b);
    gpu::launch(a, dim3{1}, dim3{1}, &add, p, 1);
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    gpu::launch(b, dim3{1}, dim3{1}, &add, q, 3);
    gpu::record(join, b);
    gpu::wait_for(join, a);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    gpu::launch(a, dim3{1}, dim3{1}, &add_to, static_cast<const int*>(q), p);
    cudaStreamCaptureStatus status{};
    REQUIRE(cudaStreamIsCapturing(b, &status) == cudaSuccess);
    CHECK(status == cudaStreamCaptureStatusActive);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(a, &graph) == cudaSuccess);
    REQUIRE(cudaStreamIsCapturing(b, &status) == cudaSuccess);
    CHECK(status == cudaStreamCaptureStatusNone);

    std::size_t nodes = 0;
    REQUIRE(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
    CHECK(nodes == 6);
    cudaGraphExec_t instance = nullptr;
    REQUIRE(cudaGraphInstantiate(&instance, graph, 0) == cudaSuccess);
    CHECK(fake_cuda::live().graphs == 2);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
    const std::size_t kernels = fake_cuda::counts().kernels;
    CHECK(gpu::value(p, a) == 0);  // captured work has not run
    for (int step = 0; step < 3; ++step) REQUIRE(cudaGraphLaunch(instance, a) == cudaSuccess);
    CHECK(gpu::value(p, a) == ((4 * 2 + 7) * 2 + 10));  // p = 2p + 1 + q, q += 3
    CHECK(fake_cuda::counts().kernels == kernels);
    CHECK(fake_cuda::counts().graph_launches == 3);
    REQUIRE(cudaGraphExecDestroy(instance) == cudaSuccess);
    CHECK(fake_cuda::live().graphs == 0);
  }
}

TEST_CASE("work before a capture and between launches keeps its order") {
  for (const fake_cuda::Options& machine : every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    const cudaStream_t stream = gpu::stream();
    int* const p = gpu::memory<int>(1);
    REQUIRE(cudaMemsetAsync(p, 0, 4, stream) == cudaSuccess);
    gpu::launch(stream, dim3{1}, dim3{1}, &add, p, 1);
    begin(stream);
    gpu::launch(stream, dim3{1}, dim3{1}, &twice, p);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    cudaGraphExec_t instance = nullptr;
    REQUIRE(cudaGraphInstantiate(&instance, graph, 0) == cudaSuccess);
    REQUIRE(cudaGraphLaunch(instance, stream) == cudaSuccess);
    gpu::launch(stream, dim3{1}, dim3{1}, &add, p, 1);
    REQUIRE(cudaGraphLaunch(instance, stream) == cudaSuccess);
    CHECK(gpu::value(p, stream) == 6);
    REQUIRE(cudaGraphExecDestroy(instance) == cudaSuccess);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  }
}

TEST_CASE("captures with operations that a graph cannot contain fail when they end") {
  fake_cuda::restart({});
  const cudaStream_t a = gpu::stream(), b = gpu::stream();
  const cudaEvent_t fork = gpu::event(), outside = gpu::event();
  int* const p = gpu::memory<int>(1);

  begin(a);
  CHECK(cudaStreamSynchronize(a) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(a) == cudaErrorStreamCaptureInvalidated);

  begin(a);
  gpu::record(fork, a);
  CHECK(cudaEventQuery(fork) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(a) == cudaErrorStreamCaptureInvalidated);

  begin(a);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 4) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(a) == cudaErrorStreamCaptureInvalidated);

  begin(a);
  gpu::launch(a, dim3{1}, dim3{1}, &twice, p);
  gpu::record(fork, a);
  gpu::wait_for(fork, b);
  gpu::launch(b, dim3{1}, dim3{1}, &twice, p);
  CHECK(end(b) == cudaErrorIllegalState);  // the capture began on another stream
  CHECK(end(a) == cudaErrorStreamCaptureUnjoined);

  gpu::launch(b, dim3{1}, dim3{1}, &twice, p);
  gpu::record(outside, b);
  begin(a);
  CHECK(cudaStreamWaitEvent(a, outside, 0) == cudaErrorStreamCaptureIsolation);
  CHECK(end(a) == cudaErrorStreamCaptureInvalidated);

  CHECK(end(a) == cudaErrorIllegalState);  // without a capture
  begin(a);
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed) == cudaErrorIllegalState);
  CHECK(end(a) == cudaSuccess);
  begin(a);
  CHECK(stderr_of([&] { static_cast<void>(cudaStreamDestroy(a)); }).says("cudaStreamDestroy of a stream of a capture"));
  CHECK(end(a) == cudaSuccess);
}

TEST_CASE("the mode of a capture selects whose calls it forbids") {
  fake_cuda::restart({});
  const cudaStream_t stream = gpu::stream();
  const auto allocate_elsewhere = [] {
    cudaError_t error = cudaSuccess;
    std::thread{[&] {
      void* memory = nullptr;
      error = cudaMalloc(&memory, 4);
    }}.join();
    return error;
  };
  begin(stream, cudaStreamCaptureModeGlobal);
  CHECK(allocate_elsewhere() == cudaErrorStreamCaptureUnsupported);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  begin(stream, cudaStreamCaptureModeThreadLocal);
  CHECK(allocate_elsewhere() == cudaSuccess);
  CHECK(end(stream) == cudaSuccess);
  begin(stream, cudaStreamCaptureModeRelaxed);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 4) == cudaSuccess);
  CHECK(end(stream) == cudaSuccess);
  begin(stream, cudaStreamCaptureModeThreadLocal);
  cudaError_t elsewhere = cudaSuccess;
  std::thread{[&] { elsewhere = end(stream); }}.join();
  CHECK(elsewhere == cudaErrorStreamCaptureWrongThread);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
}
