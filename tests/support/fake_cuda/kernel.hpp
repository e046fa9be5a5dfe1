/// Kernels as the compiler of the host sees them: functions that every thread of every block of a grid calls.
#pragma once

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <string_view>

#include "bound_kernel.hpp"

namespace fake_cuda {

/// A CUDA thread.
struct KernelThread {
  uint3 thread{};
  uint3 block{};
  dim3 block_dim{};
  dim3 grid_dim{};
  unsigned number = 0;  // in its block
};

/// The one that calls.
[[nodiscard]] const KernelThread& this_kernel_thread();

/// Waits for all threads of the block.
void synchronize_block();
/// Waits for all threads of the warp.
void synchronize_warp();
/// Replaces `bytes` bytes at `value` by those that the thread of the same warp with the number `lane` brings to this call.
void exchange_in_warp(void* value, std::size_t bytes, unsigned lane);
/// The same memory of the block for all calls with the same `key`, which holds no values of other blocks.
[[nodiscard]] void* shared_in_block(const void* key, std::size_t bytes);

/// What a launch does. `name` is how messages call the kernel.
cudaError_t launch_named(const cudaLaunchConfig_t& config, std::string_view name, BoundKernel kernel);

/// The same, where `signature` is the text of a function's signature in which the types of the kernel's
/// parameters come after "Expected = ".
cudaError_t launch(const cudaLaunchConfig_t& config, std::string_view signature, BoundKernel kernel);

}  // namespace fake_cuda
