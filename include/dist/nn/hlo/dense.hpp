#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>

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

/// Adds a layer's bias, if it has one, along the last axis of its products, and applies the activation. `parameters` are
/// the kernel and the bias.
template <class Function, class Arguments, hlo::TracedArray Y, class Parameters>
[[nodiscard]] Y finished_products(const Arguments& arguments, Y products, const Parameters& parameters) {
  if constexpr (std::tuple_size_v < Parameters >> 1)
    products = products + hlo::broadcast<Y, Y::rank - 1>(std::get<1>(parameters));
  return activated<Function>(arguments.of_factors(products));
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
    const auto kernel = arguments.factor(std::get<0>(parameters));
    return detail::finished_products<Activation>(arguments, hlo::contract<X::rank - 1, 0>(arguments.factor(x), kernel),
                                                 parameters);
  }
};

}  // namespace dist::nn
