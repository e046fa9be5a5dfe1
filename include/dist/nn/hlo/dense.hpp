#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/dense.hpp>

namespace dist::nn {

namespace detail {

/// Applies the function with its explicit gradient.
template <class Function, hlo::TracedArray X>
[[nodiscard]] X activated(X x) {
  if constexpr (std::same_as<Function, Linear>) {
    return x;
  } else {
    const X y = Function::apply(x);
    return hlo::with_gradient(y, x, [known = HasGradientOfOutput<Function> ? y : x](X y_gradient) {
      return activation_gradient<Function>(known, y_gradient);
    });
  }
}

}  // namespace detail

/// The lowering of nn::Activate and nn::ReLU.
template <class Function>
struct Lowering<Activate<Function>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static X forward(const Arguments&, X x, const Parameters&, State&) {
    return detail::activated<typename Activate<Function>::Activation>(x);
  }
};

/// The lowering of nn::Dense.
template <std::size_t Units, class Function, class KernelInitializer, class BiasInitializer>
struct Lowering<Dense<Units, Function, KernelInitializer, BiasInitializer>> {
  /// The activation of the layer.
  using Activation = typename Dense<Units, Function, KernelInitializer, BiasInitializer>::Activation;

  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State&) {
    const auto& [kernel, bias] = parameters;
    const auto products = hlo::contract<1, 0>(arguments.factor(x), arguments.factor(kernel));
    using Y = std::remove_const_t<decltype(products)>;
    return detail::activated<Activation>(arguments.of_factors(products + hlo::broadcast<Y, 1>(bias)));
  }
};

}  // namespace dist::nn
