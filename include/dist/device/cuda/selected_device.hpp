#pragma once

#include <atomic>
#include <type_traits>
#include <utility>

#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>

namespace dist::cuda {

/// Selects `device` for the calling thread, which creates its context.
inline void select_device(int device) {
  if (const cudaError_t answer = cudaSetDevice(device); answer != cudaSuccess) [[unlikely]]
    cuda::check(answer, concat("cudaSetDevice(", device, ")"), device);
}

/// Selects `device` for the calling thread during the lifetime of this object; then restores the previous one.
class SelectedDevice {
 public:
  /// Throws CudaError, or GpuLost if the process can no longer use GPUs.
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

/// Leaks an object that may be in use by GPU work that never finishes. Keeps it in a list, so that leak checkers do not
/// report it. Thread-safe. Throws std::bad_alloc, which terminates the program in a destructor.
template <class T>
void leave_behind(T&& used) {
  struct Leaked {
    std::remove_cvref_t<T> used;
    Leaked* before;
  };
  static constinit std::atomic<Leaked*> last{nullptr};
  auto* const kept = new Leaked{std::forward<T>(used), last.load()};
  while (!last.compare_exchange_weak(kept->before, kept)) {
  }
}

}  // namespace dist::cuda
