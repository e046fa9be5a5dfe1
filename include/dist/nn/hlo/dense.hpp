#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/activate.hpp>
#include <dist/nn/hlo/emitted.hpp>
#include <dist/nn/layers/dense.hpp>

namespace dist::nn {

template <std::size_t Units, class Function, class KernelInitializer, class BiasInitializer>
struct Emitted<Dense<Units, Function, KernelInitializer, BiasInitializer>> {
  using Activation = typename Dense<Units, Function, KernelInitializer, BiasInitializer>::Activation;

  template <class Placed, class Pass, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Pass& pass, X x, const Parameters& parameters, State&) {
    const auto& [kernel, bias] = parameters;
    const auto products = hlo::contract<1, 0>(pass.factor(x), pass.factor(kernel));
    using Y = std::remove_const_t<decltype(products)>;
    return detail::activated<Activation>(pass.of_factors(products + hlo::broadcast<Y, 1>(bias)));
  }
};

}  // namespace dist::nn
