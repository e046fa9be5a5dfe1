#include "gpu.hpp"

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <support/sanitizers.hpp>
#include <support/stderr_of.hpp>

using testing::stderr_of;

namespace {

fake_cuda::Options gpus(int devices) {
  fake_cuda::Options options;
  options.devices = devices;
  return options;
}

void run_set(int device, int* memory, std::size_t count) {
  const cudaStream_t stream = gpu::stream(device);
  gpu::launch(stream, dim3{1}, dim3{256}, &gpu::set<int>, memory, count, 7);
  gpu::synchronize(stream);
}

}  // namespace

TEST_CASE("new memory is not zero and holds data copied to it") {
  fake_cuda::restart(gpus(1));
  const cudaStream_t stream = gpu::stream();
  unsigned* const memory = gpu::memory<unsigned>(3);
  CHECK(gpu::value(memory + 2, stream) == 0xCDCDCDCD);
  unsigned* const host = gpu::pinned<unsigned>(3);
  CHECK(host[1] == 0xCDCDCDCD);
  for (unsigned i = 0; i < 3; ++i) host[i] = i + 1;
  gpu::copy(memory, host, 3, stream);
  CHECK(gpu::value(memory + 2, stream) == 3);
  REQUIRE(cudaMemsetAsync(memory, 0, 8, stream) == cudaSuccess);
  CHECK(gpu::value(memory + 1, stream) == 0);
  CHECK(gpu::value(memory + 2, stream) == 3);
  REQUIRE(cudaFreeHost(host) == cudaSuccess);
  REQUIRE(cudaFree(memory) == cudaSuccess);
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(fake_cuda::live() == fake_cuda::Live{});
}

TEST_CASE("host access to GPU memory is an error") {
  fake_cuda::restart(gpus(2));
  volatile int* const memory = gpu::memory<int>(100, 1);
  const auto writes = stderr_of([&] { memory[3] = 1; });
  CHECK(writes.says("fake CUDA: the host touched memory of GPU 1, byte 12 of 400"));
  const auto reads = stderr_of([&] { static_cast<void>(memory[99]); });
  CHECK(reads.says("the host touched memory of GPU 1, byte 396 of 400"));
  run_set(1, const_cast<int*>(memory), 100);
  const auto after_kernel = stderr_of([&] { memory[3] = 1; });
  CHECK(after_kernel.says("the host touched memory of GPU 1, byte 12 of 400"));
}

TEST_CASE("kernel access beyond an allocation is an error") {
  fake_cuda::restart(gpus(1));
  int* const memory = gpu::memory<int>(100);
  const auto behind = stderr_of([&] { run_set(0, memory, 101); });
#ifdef DIST_TEST_ADDRESS_SANITIZER
  CHECK(behind.says("use-after-poison"));
#else
  CHECK(behind.says("wrote to memory of GPU 0, byte 400 of 400"));
  CHECK(behind.says("'kernel (int"));
#endif
  const auto far_behind = stderr_of([&] { run_set(0, memory, 200); });
#ifdef DIST_TEST_ADDRESS_SANITIZER
  CHECK(far_behind.says("use-after-poison"));
#else
  CHECK(far_behind.says("touched memory of GPU 0, byte 512 of 400"));
#endif
}

TEST_CASE("access to freed memory is an error") {
  fake_cuda::restart(gpus(1));
  int* const memory = gpu::memory<int>(100);
  int** const holder = gpu::memory<int*>(1);
  REQUIRE(cudaFree(memory) == cudaSuccess);
  CHECK(stderr_of([&] { run_set(0, memory, 100); }).says("is the address of freed memory of GPU 0, byte 0 of 400"));
  CHECK(stderr_of([&] {
          *const_cast<volatile int*>(memory) = 1;
        }).says("the host touched freed memory of GPU 0, byte 0"));
  CHECK(stderr_of([&] { static_cast<void>(cudaFree(memory)); }).says("cudaFree of what is not allocated"));
  CHECK(stderr_of([&] { static_cast<void>(cudaFree(holder + 1)); }).says("cudaFree of what is not allocated"));
}

TEST_CASE("freeing memory that pending work uses is an error") {
  fake_cuda::Options lazy = gpus(1);
  lazy.schedule = fake_cuda::Schedule::lazy;
  fake_cuda::restart(lazy);
  const cudaStream_t stream = gpu::stream();
  int* const memory = gpu::memory<int>(100);
  int* const host = gpu::pinned<int>(100);
  gpu::launch(stream, dim3{1}, dim3{256}, &gpu::set<int>, memory, std::size_t{100}, 7);
  CHECK(stderr_of([&] { static_cast<void>(cudaFree(memory)); }).says("cudaFree of memory that 'kernel (int"));
  gpu::copy(host, memory, 100, stream);
  CHECK(stderr_of([&] {
          static_cast<void>(cudaFreeHost(host));
        }).says("cudaFreeHost of memory that 'copy of 400 bytes' of stream 1 on GPU 0 has not used yet"));
  gpu::synchronize(stream);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cudaFreeHost(host) == cudaSuccess);
}

TEST_CASE("kernels access other GPUs' memory only with peer access") {
  fake_cuda::restart(gpus(2));
  int* const memory = gpu::memory<int>(100, 0);
  CHECK(stderr_of([&] { run_set(1, memory, 100); }).says("on GPU 1 touched memory of GPU 0, byte 0 of 400"));
  int can = 0;
  REQUIRE(cudaDeviceCanAccessPeer(&can, 1, 0) == cudaSuccess);
  CHECK(can == 1);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaDeviceEnablePeerAccess(0, 0) == cudaSuccess);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorInvalidDevice);
  run_set(1, memory, 100);
  CHECK(gpu::value(memory + 99, gpu::stream(0)) == 7);
  CHECK(gpu::value(memory + 99, gpu::stream(1)) == 7);  // copies do not need peer access

  fake_cuda::Options apart = gpus(2);
  apart.peer_access = false;
  fake_cuda::restart(apart);
  REQUIRE(cudaDeviceCanAccessPeer(&can, 1, 0) == cudaSuccess);
  CHECK(can == 0);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessUnsupported);
}

TEST_CASE("asynchronous copies accept pinned memory and GPU memory") {
  fake_cuda::restart(gpus(1));
  const cudaStream_t stream = gpu::stream();
  int* const memory = gpu::memory<int>(100);
  std::vector<int> pageable(100);
  CHECK(stderr_of([&] {
          gpu::copy(memory, pageable.data(), 100, stream);
        }).says("cudaMemcpyAsync of 400 bytes of pageable memory of the host, which is not asynchronous: pin it"));
  CHECK(stderr_of([&] { gpu::copy(pageable.data(), memory, 100, stream); }).says("pageable memory of the host"));
  int* const host = gpu::pinned<int>(100);
  CHECK(stderr_of([&] { gpu::copy(memory, host, 101, stream); }).says("cudaMemcpyAsync of 404 bytes of"));
  CHECK(stderr_of([&] {
          gpu::copy(host, memory + 1, 100, stream);
        }).says("cudaMemcpyAsync of 400 bytes of memory of GPU 0, byte 4 of 400, where these are not"));
  CHECK(stderr_of([&] {
          static_cast<void>(cudaMemsetAsync(memory, 0, 401, stream));
        }).says("cudaMemsetAsync of 401 bytes of memory of GPU 0"));
  CHECK(stderr_of([&] { static_cast<void>(cudaFreeHost(host + 1)); }).says("cudaFreeHost of what is not allocated"));
}

TEST_CASE("kernels access only host memory that is mapped for their GPU") {
  fake_cuda::restart(gpus(2));
  int* const shared = gpu::mapped<int>(100);
  run_set(0, shared, 50);
  run_set(1, shared + 50, 50);
  for (int i = 0; i < 100; ++i) CHECK(shared[i] == 7);
  int* const of_one = gpu::mapped<int>(100, false, 1);
  run_set(1, of_one, 100);
  int* const pinned = gpu::pinned<int>(100);
  CHECK(stderr_of([&] { run_set(0, of_one, 100); }).says("pinned memory of the host that is not mapped for GPU 0"));
  CHECK(stderr_of([&] { run_set(0, pinned, 100); }).says("pinned memory of the host that is not mapped for GPU 0"));
  void* nowhere = nullptr;
  CHECK(cudaHostGetDevicePointer(&nowhere, pinned, 0) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, shared + 3) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost);
  CHECK(attributes.hostPointer == shared + 3);
  REQUIRE(cudaPointerGetAttributes(&attributes, gpu::memory<int>(1, 1)) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 1);
  REQUIRE(cudaPointerGetAttributes(&attributes, &attributes) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

TEST_CASE("the runtime copies between host and GPU memory but not within host memory") {
  fake_cuda::restart(gpus(1));
  const cudaStream_t stream = gpu::stream();
  int* const shared = gpu::mapped<int>(10);
  int* const pinned = gpu::pinned<int>(10);
  int* const memory = gpu::memory<int>(10);
  gpu::copy(memory, shared, 10, stream);
  gpu::copy(shared, memory, 10, stream);
  CHECK(
      stderr_of([&] { gpu::copy(pinned, shared, 10, stream); }).says("within memory of the host, for which the host"));
  gpu::synchronize(stream);
}

TEST_CASE("unordered use of mapped memory by the host and a kernel is a race") {
  for (const bool waits : {true, false})
    for (const fake_cuda::Schedule schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
      const auto ending = stderr_of([&] {
        fake_cuda::Options machine = gpus(1);
        machine.schedule = schedule;
        fake_cuda::restart(machine);
        const cudaStream_t stream = gpu::stream();
        int* const shared = gpu::mapped<int>(1);
        *shared = 1;
        gpu::launch(stream, dim3{1}, dim3{1}, &gpu::set<int>, shared, std::size_t{1}, 7);
        if (waits) gpu::synchronize(stream);
        if (*shared != 7) std::fputs("old value\n", stderr);
        fake_cuda::restart({});
      });
#ifdef DIST_TEST_THREAD_SANITIZER
      CHECK(ending.says("WARNING: ThreadSanitizer: data race") == !waits);
#endif
      CHECK(ending.says("old value") == (!waits && schedule == fake_cuda::Schedule::lazy));
    }
}

TEST_CASE("allocations fail beyond the memory of a GPU") {
  fake_cuda::Options small = gpus(2);
  small.memory = 1000;
  fake_cuda::restart(small);
  std::byte* const most = gpu::memory<std::byte>(900, 0);
  void* more = nullptr;
  CHECK(cudaMalloc(&more, 200) == cudaErrorMemoryAllocation);
  CHECK(more == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  std::size_t free = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(free == 100);
  CHECK(total == 1000);
  static_cast<void>(gpu::memory<std::byte>(900, 1));
  REQUIRE(cudaFree(most) == cudaSuccess);
  static_cast<void>(gpu::memory<std::byte>(1000, 0));
}
