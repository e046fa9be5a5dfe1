#pragma once

#include <atomic>
#include <type_traits>
#include <utility>

#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>

namespace dist::cuda {

/// The calling thread's calls are for `device` from now on, which gets a context.
inline void select_device(int device) {
  if (const cudaError_t answer = cudaSetDevice(device); answer != cudaSuccess) [[unlikely]]
    cuda::check(answer, concat("cudaSetDevice(", device, ")"), device);
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

/// Keeps what work of a GPU may still use that does not end: for the rest of the process's life, in a list, so that nobody
/// takes it for lost. Thread-safe. Throws std::bad_alloc, which ends the program in a destructor.
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
