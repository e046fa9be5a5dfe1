#pragma once

#include <cstddef>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/stream.hpp>
#include <dist/nn/cudnn/api.hpp>
#include <dist/nn/cudnn/memory.cuh>

namespace dist::nn::cudnn {

/// A handle of cuBLAS whose calls go to one stream.
class Blas {
 public:
  explicit Blas(cuda::StreamRef stream) : device_(stream.device()) {
    const cuda::SelectedDevice selected{device_};
    DIST_CUBLAS_CHECK(cublasCreate(&handle_));
  }
  Blas(Blas&& other) noexcept : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Blas& operator=(Blas&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Blas() {
    if (handle_ == nullptr) return;
    try {
      const cuda::SelectedDevice selected{device_};
      static_cast<void>(cublasDestroy(handle_));
    } catch (const Error&) {  // the GPU is lost, and the handle with it
    }
  }

  [[nodiscard]] cublasHandle_t get() const noexcept { return handle_; }

 private:
  int device_;
  cublasHandle_t handle_ = nullptr;
};

/// What one replica's operations share: its queue, and a handle of cuBLAS on that, which works in memory of ours, so that
/// it allocates none in a step. Products are in float as on the host: the shorter TF32 is not used.
class State {
 public:
  explicit State(const cuda::Queue& queue) : queue_(queue), memory_(queue, workspace_bytes), blas_(queue.stream()) {
    queue_.enter();
    DIST_CUBLAS_CHECK(cublasSetStream(blas_.get(), queue.stream().get()));
    DIST_CUBLAS_CHECK(cublasSetWorkspace(blas_.get(), memory_.data(), workspace_bytes));
    DIST_CUBLAS_CHECK(cublasSetMathMode(blas_.get(), CUBLAS_PEDANTIC_MATH));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// The calling thread's calls are for the queue's GPU from now on.
  struct Entered {};
  [[nodiscard]] Entered enter() const {
    queue_.enter();
    return {};
  }

  [[nodiscard]] const cuda::Queue& queue() const noexcept { return queue_; }
  [[nodiscard]] cublasHandle_t blas() const noexcept { return blas_.get(); }

 private:
  static constexpr std::size_t workspace_bytes = std::size_t{4} << 20;

  cuda::Queue queue_;
  Memory<std::byte> memory_;
  Blas blas_;
};

}  // namespace dist::nn::cudnn
