/// Replaces the library's header if GPU code runs on the host: every block gets memory without values of other blocks.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace dist::cuda {

template <class T, std::size_t count, class Tag>
T* shared() {
  static const char key = 0;
  return static_cast<T*>(fake_cuda::shared_in_block(&key, count * sizeof(T)));
}

}  // namespace dist::cuda
