#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/device/cpu.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/onednn/conv2d_primitives.hpp>
#include <dist/nn/onednn/conv2d_products.hpp>
#include <dist/nn/onednn/dense.hpp>
#include <dist/nn/onednn/elementwise.hpp>
#include <dist/nn/onednn/softmax.hpp>
#include <dist/nn/onednn/state.hpp>
#include <dist/nn/reference/attention.hpp>
#include <dist/nn/reference/average_pool2d.hpp>
#include <dist/nn/reference/dropout.hpp>
#include <dist/nn/reference/embedding.hpp>
#include <dist/nn/reference/global_average_pool2d.hpp>
#include <dist/nn/reference/max_pool2d.hpp>

namespace dist::nn::onednn {

/// Convolution: images of few pixels as products of matrices, all others by oneDNN's primitive.
template <class Geometry, class T>
using Conv2D =
    std::conditional_t<is_faster_by_products<Geometry>(), Conv2DProducts<Geometry, T>, Conv2DPrimitives<Geometry, T>>;

}  // namespace dist::nn::onednn

namespace dist::nn {

/// Layers by oneDNN, in float, one thread per replica. Primitives are compiled once per batch size; a step of
/// a known size allocates nothing, but for what oneDNN needs during a product of Conv2DProducts. Needs the component dist::onednn.
struct OneDnn {
  static constexpr std::string_view name = "oneDNN";
  using Device = Cpu;
  using State = onednn::State;

  template <class T>
  static constexpr bool supports = std::same_as<T, float>;

  template <class Geometry, class T>
  using Dense = onednn::Dense<Geometry, T>;
  template <class Geometry, class T>
  using Conv2D = onednn::Conv2D<Geometry, T>;
  template <class Geometry, class T>
  using MaxPool2D = reference::MaxPool2D<Geometry, T>;
  template <class Geometry, class T>
  using AveragePool2D = reference::AveragePool2D<Geometry, T>;
  template <class Image, class T>
  using GlobalAveragePool2D = reference::GlobalAveragePool2D<Image, T>;
  template <class Image, class T>
  using GlobalMaxPool2D = reference::MaxPool2D<GlobalPoolGeometry<Image>, T>;
  template <std::size_t Numerator, std::size_t Denominator, class T>
  using Dropout = reference::Dropout<Numerator, Denominator, T>;
  template <class Geometry, class T>
  using Attention = reference::Attention<Geometry, T>;
  template <std::size_t Words, std::size_t Width, class T>
  using Embedding = reference::Embedding<Words, Width, T>;
  template <std::size_t Classes, class T>
  using Softmax = onednn::Softmax<Classes, T>;
  template <class Function, class T>
  using Elementwise = onednn::Elementwise<Function, T>;
};

}  // namespace dist::nn
