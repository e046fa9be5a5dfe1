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
#include <dist/nn/reference/backend.hpp>

namespace dist::nn::onednn {

/// Convolution: images of few pixels as products of matrices, all others by oneDNN's primitive.
template <class Geometry, class T>
using Conv2D =
    std::conditional_t<is_faster_by_products<Geometry>(), Conv2DProducts<Geometry, T>, Conv2DPrimitives<Geometry, T>>;

}  // namespace dist::nn::onednn

namespace dist::nn {

/// Layers by oneDNN, in float, one thread per replica. Layers whose limit is memory are those of the Reference. Primitives are
/// compiled once per batch size; a step of a known size allocates nothing, but for what oneDNN needs during a product of
/// Conv2DProducts. Needs the component dist::onednn.
struct OneDnn : Reference {
  static constexpr std::string_view name = "oneDNN";
  using State = onednn::State;

  template <class T>
  static constexpr bool supports = std::same_as<T, float>;

  template <class Geometry, class T>
  using Dense = onednn::Dense<Geometry, T>;
  template <class Geometry, class T>
  using Conv2D = onednn::Conv2D<Geometry, T>;
  template <std::size_t Classes, class T>
  using Softmax = onednn::Softmax<Classes, T>;
  template <class Function, class T>
  using Elementwise = onednn::Elementwise<Function, T>;
};

}  // namespace dist::nn
