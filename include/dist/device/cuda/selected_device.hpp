#pragma once

#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>

namespace dist::cuda {

/// The calling thread's calls are for `device` from now on, which gets a context.
inline void select_device(int device) {
  if (const cudaError_t answer = cudaSetDevice(device); answer != cudaSuccess) [[unlikely]]
    cuda::check(answer, text("cudaSetDevice(", device, ")"), device);
}

/// While it lives, the calling thread's calls are for `device`; afterwards for the one before.
class SelectedDevice {
 public:
  explicit SelectedDevice(int device) {
    DIST_CUDA_CHECK(cudaGetDevice(&before_));
    if (device != before_) select_device(device);
  }
  SelectedDevice(const SelectedDevice&) = delete;
  SelectedDevice& operator=(const SelectedDevice&) = delete;
  ~SelectedDevice() { forget(cudaSetDevice(before_)); }

 private:
  int before_ = 0;
};

}  // namespace dist::cuda
