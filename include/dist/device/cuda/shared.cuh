#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace dist::cuda {

/// Returns uninitialised shared memory of a block for `count` elements, the same for all calls with the same `Tag`.
/// Kernels of the library use shared memory only through this function.
template <class T, std::size_t count, class Tag>
__device__ T* shared() {
  __shared__ T elements[count];
  return elements;
}

}  // namespace dist::cuda
