#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/nn/choice.hpp>

namespace dist::nn {

/// An activation: a function for each element. Any type with these static functions:
///
/// - `apply(x)`: the function; and one of
/// - `gradient(y, y_gradient)`: the gradient with respect to x, from the output y and its gradient. The layer keeps
///   only its output, and the next layer's pass may include this gradient.
/// - `gradient_at(x, y_gradient)`: the same gradient from the input, for functions such as Gelu whose output does not
///   determine it. The layer keeps its input, too.
///
/// All take and return numbers of the network's type, on every back end. They must be DIST_HD in networks on GPUs. In
/// programs for XLA they must not branch on values (choice.hpp), and must find functions such as `exp` by
/// argument-dependent lookup, after `using std::exp;`.
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

/// The concept as a Boolean, for shorter errors.
template <class F>
inline constexpr bool is_activation = Activation<F>;

/// The activation for a layer's template argument. Reports other types, and replaces them by Linear.
template <class Function>
struct Applied {
  static_assert(is_activation<Function>,
                "the activation of a layer must be a type with the static functions apply(x), and gradient(y, "
                "y_gradient) or gradient_at(x, y_gradient), such as nn::Relu or nn::Tanh; nn::Softmax and nn::ReLU are "
                "layers: put them after the layer");
  using Type = std::conditional_t<is_activation<Function>, Function, Linear>;
};

/// Returns the gradient with respect to the input, from the output if that is enough, else from the input.
template <class Function, class T>
[[nodiscard]] DIST_HD constexpr T activation_gradient(T output_or_input, T y_gradient) {
  if constexpr (HasGradientOfOutput<Function>)
    return Function::gradient(output_or_input, y_gradient);
  else
    return Function::gradient_at(output_or_input, y_gradient);
}

}  // namespace detail

/// The identity: the layers' default activation, as in Keras.
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

/// max(x, 0). The gradient at 0 is 0, as in TensorFlow. NaN stays NaN, and passes gradients through.
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

/// x, or for negative x its share `Numerator` / `Denominator`: `LeakyRelu<20>` keeps 20 % (Maas, Hannun and Ng:
/// "Rectifier nonlinearities improve neural network acoustic models", ICML 2013). The default is the 0.2 of Keras'
/// activation; its layer LeakyReLU keeps 30 %. The gradient at 0 is the share, as in TensorFlow.
template <std::size_t Numerator = 20, std::size_t Denominator = 100>
struct LeakyRelu {
  static_assert(Numerator > 0 && Denominator > 0,
                "nn::LeakyRelu keeps a share above 0: LeakyRelu<20> keeps 20 % of negative numbers, LeakyRelu<1, 3> a "
                "third; nn::Relu keeps none");

  template <class T>
  [[nodiscard]] DIST_HD static constexpr T apply(T x) {
    using detail::select;
    return select(x > T{0}, x, slope<T>() * x);
  }
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T gradient(T y, T y_gradient) {
    using detail::select;
    return select(y > T{0}, y_gradient, slope<T>() * y_gradient);
  }

 private:
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T slope() {
    return T(static_cast<double>(Numerator) / static_cast<double>(Denominator));
  }
};

}  // namespace dist::nn
