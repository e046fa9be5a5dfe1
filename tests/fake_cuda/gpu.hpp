/// Calls of the CUDA runtime for tests of the fake GPU. Every call must succeed.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include <doctest/doctest.h>
#include <support/fake_cuda/machine.hpp>

namespace gpu {

inline cudaStream_t stream(int device = 0) {
  cudaStream_t made = nullptr;
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking) == cudaSuccess);
  return made;
}
inline cudaEvent_t event(int device = 0) {
  cudaEvent_t made = nullptr;
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&made, cudaEventDisableTiming) == cudaSuccess);
  return made;
}

template <class T>
T* memory(std::size_t count, int device = 0) {
  void* first = nullptr;
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  REQUIRE(cudaMalloc(&first, count * sizeof(T)) == cudaSuccess);
  return static_cast<T*>(first);
}
template <class T>
T* pinned(std::size_t count) {
  void* first = nullptr;
  REQUIRE(cudaMallocHost(&first, count * sizeof(T)) == cudaSuccess);
  return static_cast<T*>(first);
}
/// Returns pinned memory that kernels can access: on all GPUs, or only on `device`.
template <class T>
T* mapped(std::size_t count, bool is_portable = true, int device = 0) {
  void *first = nullptr, *on_devices = nullptr;
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  const unsigned portable = is_portable ? cudaHostAllocPortable : 0;
  REQUIRE(cudaHostAlloc(&first, count * sizeof(T), cudaHostAllocMapped | portable) == cudaSuccess);
  REQUIRE(cudaHostGetDevicePointer(&on_devices, first, 0) == cudaSuccess);
  REQUIRE(on_devices == first);  // unified addresses
  return static_cast<T*>(first);
}

template <class T>
void copy(T* to, const T* from, std::size_t count, cudaStream_t stream) {
  REQUIRE(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, stream) == cudaSuccess);
}

inline void record(cudaEvent_t event, cudaStream_t stream) { REQUIRE(cudaEventRecord(event, stream) == cudaSuccess); }
inline void wait_for(cudaEvent_t event, cudaStream_t stream) {
  REQUIRE(cudaStreamWaitEvent(stream, event, 0) == cudaSuccess);
}
inline void synchronize(cudaStream_t stream) { REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess); }

template <class... Expected, class... Given>
cudaError_t try_launch(cudaStream_t stream, dim3 grid, dim3 block, void (*kernel)(Expected...), Given&&... given) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Given>(given)...);
}
template <class... Expected, class... Given>
void launch(cudaStream_t stream, dim3 grid, dim3 block, void (*kernel)(Expected...), Given&&... given) {
  REQUIRE(try_launch(stream, grid, block, kernel, std::forward<Given>(given)...) == cudaSuccess);
}

/// Copies a value to the host after all work on the stream.
template <class T>
T value(const T* at, cudaStream_t stream) {
  T* const to = pinned<T>(1);
  copy(to, at, 1, stream);
  synchronize(stream);
  const T result = *to;
  REQUIRE(cudaFreeHost(to) == cudaSuccess);
  return result;
}

/// Sets p[i] to `value`, one element per thread.
template <class T>
__global__ void set(T* p, std::size_t count, T value) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) p[i] = value;
}

}  // namespace gpu
