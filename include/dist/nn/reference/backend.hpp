#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/device/cpu.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/reference/layers.hpp>
#include <dist/nn/reference/windows.hpp>

namespace dist::nn {

/// Plain loops for any floating-point type, without dependencies: the reference for other back ends.
struct Reference {
  static constexpr std::string_view name = "reference";
  using Device = Cpu;

  template <class T>
  static constexpr bool supports = std::floating_point<T>;

  /// Empty: plain loops share no state.
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
