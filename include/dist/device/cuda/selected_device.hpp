#pragma once

#include <dist/device/cuda/api.hpp>

namespace dist::cuda {

/// While it lives, the calling thread's calls are for `device`; afterwards for the one before.
class SelectedDevice {
 public:
  explicit SelectedDevice(int device) {
    DIST_CUDA_CHECK(cudaGetDevice(&before_));
    if (device != before_) DIST_CUDA_CHECK(cudaSetDevice(device));
  }
  SelectedDevice(const SelectedDevice&) = delete;
  SelectedDevice& operator=(const SelectedDevice&) = delete;
  ~SelectedDevice() { forget(cudaSetDevice(before_)); }

 private:
  int before_ = 0;
};

}  // namespace dist::cuda
