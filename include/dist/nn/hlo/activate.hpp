#pragma once

#include <concepts>

#include <dist/hlo/with_gradient.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/hlo/emitted.hpp>
#include <dist/nn/layers/activate.hpp>

namespace dist::nn {

namespace detail {

/// The function of each element, with the gradient that it says itself.
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

/// nn::ReLU, too, is such a layer.
template <class Function>
struct Emitted<Activate<Function>> {
  template <class Placed, class Pass, hlo::TracedArray X, class Parameters, class State>
  static X forward(const Pass&, X x, const Parameters&, State&) {
    return detail::activated<typename Activate<Function>::Activation>(x);
  }
};

}  // namespace dist::nn
