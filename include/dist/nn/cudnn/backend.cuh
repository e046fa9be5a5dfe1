#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/device/cuda/device.cuh>
#include <dist/nn/backend.hpp>
#include <dist/nn/cudnn/attention.cuh>
#include <dist/nn/cudnn/average_pool2d.cuh>
#include <dist/nn/cudnn/batch_normalization.cuh>
#include <dist/nn/cudnn/conv2d.cuh>
#include <dist/nn/cudnn/dense.cuh>
#include <dist/nn/cudnn/dropout.cuh>
#include <dist/nn/cudnn/elementwise.cuh>
#include <dist/nn/cudnn/embedding.cuh>
#include <dist/nn/cudnn/group_normalization.cuh>
#include <dist/nn/cudnn/max_pool2d.cuh>
#include <dist/nn/cudnn/memory.cuh>
#include <dist/nn/cudnn/softmax.cuh>
#include <dist/nn/cudnn/state.cuh>
#include <dist/nn/geometry.hpp>

namespace dist::nn {

/// Layers on GPUs, in float: dense products by cuBLAS, convolutions by cuDNN, all others by kernels of ours.
/// Batches, targets and gradients lie in the GPU's memory; a step puts its work into the replica's queue. The same step
/// gives the same bits each time. Needs the component dist::cudnn.
struct CuDnn {
  static constexpr std::string_view name = "cuDNN";
  using Device = Cuda;
  using State = cudnn::State;
  template <class T>
  using Memory = cudnn::Memory<T>;

  template <class T>
  static constexpr bool supports = std::same_as<T, float>;

  template <class Geometry, class T>
  using Dense = cudnn::Dense<Geometry, T>;
  template <class Geometry, class T>
  using Conv2D = cudnn::Conv2D<Geometry, T>;
  template <class Geometry, class T>
  using MaxPool2D = cudnn::MaxPool2D<Geometry, T>;
  template <class Geometry, class T>
  using AveragePool2D = cudnn::AveragePool2D<Geometry, T>;
  template <class Image, class T>
  using GlobalAveragePool2D = cudnn::AveragePool2D<GlobalPoolGeometry<Image>, T>;
  template <class Image, class T>
  using GlobalMaxPool2D = cudnn::MaxPool2D<GlobalPoolGeometry<Image>, T>;
  template <std::size_t Channels, class T>
  using BatchNormalization = cudnn::BatchNormalization<Channels, T>;
  template <std::size_t Numerator, std::size_t Denominator, class T>
  using Dropout = cudnn::Dropout<Numerator, Denominator, T>;
  template <class Geometry, class T>
  using Attention = cudnn::Attention<Geometry, T>;
  template <std::size_t Words, std::size_t Width, class T>
  using Embedding = cudnn::Embedding<Words, Width, T>;
  template <class Geometry, class T>
  using GroupNormalization = cudnn::GroupNormalization<Geometry, T>;
  template <std::size_t Classes, class T>
  using Softmax = cudnn::Softmax<Classes, T>;
  /// Also works in place.
  template <class Function, class T>
  using Elementwise = cudnn::Elementwise<Function, T>;
};

}  // namespace dist::nn
