/// Kernels for the host compiler: functions that every thread of every block of a grid calls.
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

[[nodiscard]] const KernelThread& this_kernel_thread();

void synchronize_block();
void synchronize_warp();
/// Replaces `bytes` bytes at `value` by the bytes that thread `lane` of the same warp passes.
void exchange_in_warp(void* value, std::size_t bytes, unsigned lane);
/// Returns the same memory of the block for all calls with the same `key`, without values of other blocks.
[[nodiscard]] void* shared_in_block(const void* key, std::size_t bytes);

/// Launches a kernel with the name `name` for messages.
cudaError_t launch_named(const cudaLaunchConfig_t& config, std::string_view name, BoundKernel kernel);

/// Launches a kernel whose name is taken from `signature`, a function signature with the kernel's parameter types after
/// "Expected = ".
cudaError_t launch(const cudaLaunchConfig_t& config, std::string_view signature, BoundKernel kernel);

}  // namespace fake_cuda
