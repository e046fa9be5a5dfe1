#pragma once

#include <cstddef>
#include <utility>

#include <dist/core/reduce_op.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/emitted.hpp>
#include <dist/nn/layers/softmax.hpp>

namespace dist::nn {

namespace detail {

/// What the last axis of an array was reduced to, along that axis.
template <hlo::TracedArray X, hlo::TracedArray Reduced>
[[nodiscard]] X along_last_axis(Reduced reduced) {
  return [&]<std::size_t... Axis>(std::index_sequence<Axis...>) { return hlo::broadcast<X, Axis...>(reduced); }
  (std::make_index_sequence<X::rank - 1>{});
}

/// exp(x) over its sum along the last axis. Largest elements are taken out first, so that no power overflows.
template <hlo::TracedArray X>
[[nodiscard]] X softmax(X x) {
  const auto largest = hlo::stop_gradient(hlo::reduce<X::rank - 1>(max, x));
  const X powers = exp(x - along_last_axis<X>(largest));
  return powers / along_last_axis<X>(hlo::reduce<X::rank - 1>(sum, powers));
}

}  // namespace detail

template <>
struct Emitted<Softmax> {
  template <class Placed, class Pass, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Pass&, X x, const Parameters&, State&) {
    return detail::softmax(x);
  }
};

}  // namespace dist::nn
