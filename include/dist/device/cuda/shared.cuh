#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace dist::cuda {

/// Memory for `count` elements that the threads of a block share, of no certain value at first: the same for all calls
/// with the same `Tag`. Kernels of the library share memory by this function only.
template <class T, std::size_t count, class Tag>
__device__ T* shared() {
  __shared__ T elements[count];
  return elements;
}

}  // namespace dist::cuda
