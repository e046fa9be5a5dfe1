#pragma once

#include <cstddef>
#include <utility>

#include <dist/core/duration.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/wait.hpp>

namespace dist::cuda {

/// Somebody's stream: work of one GPU in order, beside that of other streams. Cheap to copy.
class StreamRef {
 public:
  StreamRef(int device, cudaStream_t stream) noexcept : device_(device), stream_(stream) {}
  StreamRef(int device, std::nullptr_t) = delete;  // the legacy stream, which waits for all others
  StreamRef(int device, int) = delete;

  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  /// Whether all that was put there is done.
  [[nodiscard]] bool is_done() const {
    const cudaError_t answer = cudaStreamQuery(stream_);
    if (answer == cudaErrorNotReady) return false;
    cuda::check(answer, "cudaStreamQuery(stream_)", device_);
    return true;
  }
  /// Returns when it is. Throws DeadlineExceeded.
  void wait(std::chrono::nanoseconds timeout = longest_wait) const {
    await([this] { return is_done(); }, [this] { return concat("a stream of GPU ", device_); }, timeout);
  }

 private:
  int device_;
  cudaStream_t stream_;
};

/// A stream of its own, which waits for no other. What was put there goes on when it is destroyed.
class Stream {
 public:
  explicit Stream(int device) : device_(device) {
    const SelectedDevice selected{device};
    DIST_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  /// Takes over a stream of `device`.
  [[nodiscard]] static Stream from_native_handle(int device, cudaStream_t stream) noexcept {
    return Stream{device, stream};
  }
  Stream(Stream&& other) noexcept : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Stream() {
    if (stream_ != nullptr) forget(cudaStreamDestroy(stream_));
  }

  [[nodiscard]] StreamRef ref() const noexcept { return {device_, stream_}; }
  /// The caller destroys it.
  [[nodiscard]] cudaStream_t release() noexcept { return std::exchange(stream_, nullptr); }

 private:
  Stream(int device, cudaStream_t stream) noexcept : device_(device), stream_(stream) {}

  int device_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace dist::cuda
