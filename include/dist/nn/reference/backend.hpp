#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/device/cpu.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/reference/attention.hpp>
#include <dist/nn/reference/conv2d.hpp>
#include <dist/nn/reference/dense.hpp>
#include <dist/nn/reference/dropout.hpp>
#include <dist/nn/reference/elementwise.hpp>
#include <dist/nn/reference/embedding.hpp>
#include <dist/nn/reference/pool2d.hpp>

namespace dist::nn {

/// Plain loops in any floating-point type, without any package: what the other back ends are checked against.
struct Reference {
  static constexpr std::string_view name = "reference";
  using Device = Cpu;

  template <class T>
  static constexpr bool supports = std::floating_point<T>;

  /// Plain loops share nothing and need no bracket.
  struct State {
    struct Entered {};
    [[nodiscard]] Entered enter() noexcept { return {}; }
  };

  template <class Geometry, class T>
  using Dense = reference::Dense<Geometry, T>;
  template <class Geometry, class T>
  using Conv2D = reference::Conv2D<Geometry, T>;
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
  template <class Function, class T>
  using Elementwise = reference::Elementwise<Function, T>;
};

}  // namespace dist::nn
