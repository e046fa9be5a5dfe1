#pragma once

#include <concepts>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/nn/choice.hpp>

namespace dist::nn {

/// A function that a layer applies to each element: any type with
///
/// - `apply(x)`, the function, and one of
/// - `gradient(y, y_gradient)`: from the output y and the gradient with respect to it, the gradient with respect to x. A
///   layer keeps its output only, and may compute this gradient in the pass of the layer after it.
/// - `gradient_at(x, y_gradient)`: the same from the input, for functions whose output does not tell it, such as Gelu.
///   A layer keeps the input then, too.
///
/// All are static, take numbers of the network's type and return the same type. They are DIST_HD where networks on GPUs use
/// the function. Every back end computes any such type. In programs for XLA, numbers are known later: a function for these
/// asks none for its value (choice.hpp), and finds functions such as `exp` by the type of its argument, after
/// `using std::exp;`.
template <class F>
concept HasGradientOfOutput = requires(double value) {
  { F::gradient(value, value) } -> std::same_as<double>;
};
template <class F>
concept HasGradientAtInput = requires(double value) {
  { F::gradient_at(value, value) } -> std::same_as<double>;
};
template <class F>
concept Activation = (HasGradientOfOutput<F> || HasGradientAtInput<F>)&&requires(double value) {
  { F::apply(value) } -> std::same_as<double>;
};

struct Linear;

namespace detail {

/// The concept as a number, for the shorter of the compilers' sentences.
template <class F>
inline constexpr bool is_activation = Activation<F>;

/// What a layer applies for its template argument; says what is no activation, and goes on with none.
template <class Function>
struct Applied {
  static_assert(is_activation<Function>,
                "an activation of a layer is a type with the static functions apply(x), and gradient(y, y_gradient) or "
                "gradient_at(x, y_gradient), such as nn::Relu or nn::Tanh; nn::Softmax is a layer of its own, as is "
                "nn::ReLU: put it behind the layer");
  using Type = std::conditional_t<is_activation<Function>, Function, Linear>;
};

/// The gradient with respect to the function's input, from its output if that is enough, else from its input.
template <class Function, class T>
[[nodiscard]] DIST_HD constexpr T activation_gradient(T output_or_input, T y_gradient) {
  if constexpr (HasGradientOfOutput<Function>)
    return Function::gradient(output_or_input, y_gradient);
  else
    return Function::gradient_at(output_or_input, y_gradient);
}

}  // namespace detail

/// No activation: the default of layers, as in Keras.
struct Linear {
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T apply(T x) {
    return x;
  }
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T gradient(T, T y_gradient) {
    return y_gradient;
  }
};

/// max(x, 0). The gradient at 0 is 0, as in TensorFlow. The output for a NaN is NaN, and gradients pass through it.
struct Relu {
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T apply(T x) {
    using detail::select;
    return select(x < T{0}, T{0}, x);
  }
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T gradient(T y, T y_gradient) {
    using detail::select;
    return select(y <= T{0}, T{0}, y_gradient);
  }
};

}  // namespace dist::nn
