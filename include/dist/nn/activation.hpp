#pragma once

#include <concepts>

#include <dist/core/config.hpp>

namespace dist::nn {

/// A function that a layer applies to each element of its output. `gradient` gets the layer's output `y` and
/// the gradient with respect to it, and returns the gradient with respect to what the function was applied
/// to: so a layer keeps its output only. Both are DIST_HD where networks on GPUs use the function.
template <class F>
concept Activation = requires(double value) {
  { F::apply(value) } -> std::same_as<double>;
  { F::gradient(value, value) } -> std::same_as<double>;
};

/// No activation: the default of layers, as in Keras.
struct Linear {
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T apply(T x) noexcept {
    return x;
  }
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T gradient(T, T y_gradient) noexcept {
    return y_gradient;
  }
};

/// max(x, 0). The gradient at 0 is 0, as in TensorFlow; a NaN stays one.
struct Relu {
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T apply(T x) noexcept {
    return x < T{0} ? T{0} : x;
  }
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T gradient(T y, T y_gradient) noexcept {
    return y > T{0} ? y_gradient : T{0};
  }
};

}  // namespace dist::nn
