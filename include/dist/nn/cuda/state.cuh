#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/stream.hpp>
#include <dist/nn/cuda/api.hpp>
#include <dist/nn/cuda/memory.cuh>

namespace dist::nn::cuda {

/// cuBLAS, for Handle.
struct BlasLibrary {
  using Type = cublasHandle_t;
  static void create(Type& handle) { DIST_CUBLAS_CHECK(cublasCreate(&handle)); }
  static void set_stream(Type handle, cudaStream_t stream) { DIST_CUBLAS_CHECK(cublasSetStream(handle, stream)); }
  static void destroy(Type handle) noexcept { static_cast<void>(cublasDestroy(handle)); }
};
/// cuDNN, for Handle.
struct DnnLibrary {
  using Type = cudnnHandle_t;
  static void create(Type& handle) { DIST_CUDNN_CHECK(cudnnCreate(&handle)); }
  static void set_stream(Type handle, cudaStream_t stream) { DIST_CUDNN_CHECK(cudnnSetStream(handle, stream)); }
  static void destroy(Type handle) noexcept { static_cast<void>(cudnnDestroy(handle)); }
};

/// Owns a library handle whose calls go to one stream.
template <class Library>
class Handle {
 public:
  explicit Handle(dist::cuda::StreamRef stream) : device_(stream.device()) {
    const dist::cuda::SelectedDevice selected{device_};
    Library::create(handle_);
    try {
      Library::set_stream(handle_, stream.get());
    } catch (...) {
      Library::destroy(handle_);
      throw;
    }
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    try {
      const dist::cuda::SelectedDevice selected{device_};
      Library::destroy(handle_);
    } catch (const Error&) {  // the GPU is lost, and its handles with it
    }
  }

  [[nodiscard]] typename Library::Type get() const noexcept { return handle_; }

 private:
  int device_;
  typename Library::Type handle_ = nullptr;
};

/// The resources that one replica's operations share: its queue, cuBLAS and cuDNN handles, and a workspace, so that
/// steps of a known batch size allocate no memory. Products use full float precision, like on the host, or TF32 if
/// factors are as short.
class State {
 public:
  /// The state of a replica with this queue. Throws CuBlasError, CuDnnError or OutOfMemory.
  explicit State(const dist::cuda::Queue& queue)
      : queue_(queue), blas_memory_(queue, blas_bytes), blas_(queue.stream()) {
    queue_.enter();
    DIST_CUBLAS_CHECK(cublasSetWorkspace(blas_.get(), blas_memory_.data(), blas_bytes));
    DIST_CUBLAS_CHECK(cublasSetMathMode(blas_.get(), CUBLAS_PEDANTIC_MATH));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Makes the queue's GPU current in the calling thread.
  struct Entered {};
  [[nodiscard]] Entered enter() const {
    queue_.enter();
    return {};
  }

  /// The replica's queue, in which operations enqueue their work.
  [[nodiscard]] const dist::cuda::Queue& queue() const noexcept { return queue_; }
  /// The handle of cuBLAS for the replica's queue.
  [[nodiscard]] cublasHandle_t blas() const noexcept { return blas_.get(); }
  /// Permits TF32, because factors have at most 11 significant bits (see TakesShortFactors). Call it before the first
  /// product.
  void set_short_factors() {
    queue_.enter();
    DIST_CUBLAS_CHECK(cublasSetMathMode(blas_.get(), CUBLAS_TF32_TENSOR_OP_MATH));
    convolution_math_ = CUDNN_DEFAULT_MATH;  // permits TF32
  }
  /// The precision of convolutions: full float precision, or TF32.
  [[nodiscard]] cudnnMathType_t convolution_math() const noexcept { return convolution_math_; }

  /// Created at the first convolution.
  [[nodiscard]] cudnnHandle_t dnn() {
    if (!dnn_) dnn_.emplace(queue_.stream());
    return dnn_->get();
  }

  /// Returns GPU memory for work enqueued before the next call. To grow it, waits for the queue. Throws OutOfMemory.
  [[nodiscard]] std::byte* workspace(std::size_t bytes) {
    workspace_.reserve(queue_, bytes);
    return workspace_.data();
  }

 private:
  static constexpr std::size_t blas_bytes = std::size_t{4} << 20;

  dist::cuda::Queue queue_;
  Memory<std::byte> blas_memory_;
  Memory<std::byte> workspace_;
  Handle<BlasLibrary> blas_;
  std::optional<Handle<DnnLibrary>> dnn_;
  cudnnMathType_t convolution_math_ = CUDNN_FMA_MATH;
};

}  // namespace dist::nn::cuda
