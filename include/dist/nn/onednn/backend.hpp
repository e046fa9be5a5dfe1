#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/float16.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/onednn/layers.hpp>
#include <dist/nn/onednn/operations.hpp>
#include <dist/nn/reference/backend.hpp>

namespace dist::nn::onednn {

/// A convolution: matrix products for images of few pixels, otherwise oneDNN's primitive.
template <class Geometry, class T>
using Conv2D =
    std::conditional_t<is_faster_by_products<Geometry>(), Conv2DProducts<Geometry, T>, Conv2DPrimitives<Geometry, T>>;

}  // namespace dist::nn::onednn

namespace dist::nn {

/// A back end with oneDNN, in float, with one thread per replica. Memory-bound layers use Reference. Primitives are
/// compiled once per batch size; steps of a known batch size allocate no memory, except inside oneDNN in
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
  template <class Geometry, class T>
  using Attention = onednn::Attention<Geometry, T>;
  template <std::size_t Classes, class T>
  using Softmax = onednn::Softmax<Classes, T>;
  template <class Function, class T>
  using Elementwise = onednn::Elementwise<Function, T>;

  /// See MultipliesShort.
  template <class Half>
    requires std::same_as<Half, BFloat16>
  struct Short {
    [[nodiscard]] static bool is_available() { return onednn::multiplies_bfloat16_faster(); }

    template <class Geometry, class T>
    using Dense = onednn::ShortDense<Geometry, T>;
    template <class Geometry, class T>
    using Conv2D = onednn::Conv2DPrimitives<Geometry, T, BFloat16>;
  };
};

}  // namespace dist::nn
