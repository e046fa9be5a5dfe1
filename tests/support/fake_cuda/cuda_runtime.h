/// Replaces the toolkit's `<cuda_runtime.h>` if a host compiler compiles GPU code: kernels are plain functions, and a
/// launch submits an operation to a fake stream. The runtime's declarations are the toolkit's own.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "bound_kernel.hpp"
#include "kernel.hpp"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __launch_bounds__(...)

namespace fake_cuda {

/// One index of the running thread, read on use.
template <auto vector, auto component>
struct Number {
  operator unsigned() const { return (this_kernel_thread().*vector).*component; }
};
template <auto vector, class T>
struct Numbers {
  Number<vector, &T::x> x;
  Number<vector, &T::y> y;
  Number<vector, &T::z> z;
};

}  // namespace fake_cuda

inline constexpr fake_cuda::Numbers<&fake_cuda::KernelThread::thread, uint3> threadIdx{};
inline constexpr fake_cuda::Numbers<&fake_cuda::KernelThread::block, uint3> blockIdx{};
inline constexpr fake_cuda::Numbers<&fake_cuda::KernelThread::block_dim, dim3> blockDim{};
inline constexpr fake_cuda::Numbers<&fake_cuda::KernelThread::grid_dim, dim3> gridDim{};

inline void __syncthreads() { fake_cuda::synchronize_block(); }
inline void __syncwarp(unsigned = ~0U) { fake_cuda::synchronize_warp(); }

// Shuffles of whole warps.
template <class T>
T __shfl_sync(unsigned, T value, int lane, int = 32) {
  fake_cuda::exchange_in_warp(&value, sizeof value, static_cast<unsigned>(lane));
  return value;
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned delta, int = 32) {
  const unsigned lane = fake_cuda::this_kernel_thread().number % 32;
  fake_cuda::exchange_in_warp(&value, sizeof value, lane + delta < 32 ? lane + delta : lane);
  return value;
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask, int = 32) {
  const unsigned lane = fake_cuda::this_kernel_thread().number % 32;
  fake_cuda::exchange_in_warp(&value, sizeof value, lane ^ static_cast<unsigned>(mask));
  return value;
}

template <class... Expected, class... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...), Given&&... given) {
  static_assert((std::is_trivially_copyable_v<std::decay_t<Expected>> && ...),
                "arguments of kernels are copied byte by byte");
  return fake_cuda::launch(*config, __PRETTY_FUNCTION__,
                           fake_cuda::BoundKernel::of(kernel, std::forward<Given>(given)...));
}
