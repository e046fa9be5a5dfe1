#pragma once

#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/hlo/emitted.hpp>
#include <dist/nn/layers/activate.hpp>

namespace dist::nn {

/// The function of each element. nn::ReLU, too, is such a layer.
template <class Function>
struct Emitted<Activate<Function>> {
  template <class Placed, class Pass, hlo::TracedArray X, class Parameters, class State>
  static X forward(const Pass&, X x, const Parameters&, State&) {
    return Activate<Function>::Activation::apply(x);
  }
};

}  // namespace dist::nn
