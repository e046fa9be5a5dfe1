#pragma once

#include <utility>

#include <dist/nn/cuda/api.hpp>

namespace dist::nn::cuda {

/// Owns a cuDNN descriptor.
template <class Handle, cudnnStatus_t (*create)(Handle*), cudnnStatus_t (*destroy)(Handle)>
class Descriptor {
 public:
  Descriptor() { cuda::check(create(&handle_), "creating a descriptor"); }
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Descriptor() {
    if (handle_ != nullptr) static_cast<void>(destroy(handle_));
  }

  [[nodiscard]] Handle get() const noexcept { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor>;

/// A batch of float images [height, width, channels].
[[nodiscard]] inline TensorDescriptor images(int count, int height, int width, int channels) {
  TensorDescriptor made;
  DIST_CUDNN_CHECK(
      cudnnSetTensor4dDescriptor(made.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, count, channels, height, width));
  return made;
}
/// Float kernels [filters, height, width, channels per group]; cuDNN has no layout with the filters innermost.
[[nodiscard]] inline FilterDescriptor kernels(int filters, int height, int width, int channels) {
  FilterDescriptor made;
  DIST_CUDNN_CHECK(
      cudnnSetFilter4dDescriptor(made.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, filters, channels, height, width));
  return made;
}
/// A correlation in float with symmetric padding.
[[nodiscard]] inline ConvolutionDescriptor correlation(int pad_height, int pad_width, int stride, int groups,
                                                       cudnnMathType_t math) {
  ConvolutionDescriptor made;
  DIST_CUDNN_CHECK(cudnnSetConvolution2dDescriptor(made.get(), pad_height, pad_width, stride, stride, 1, 1,
                                                   CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  DIST_CUDNN_CHECK(cudnnSetConvolutionGroupCount(made.get(), groups));
  DIST_CUDNN_CHECK(cudnnSetConvolutionMathType(made.get(), math));
  return made;
}

}  // namespace dist::nn::cuda
