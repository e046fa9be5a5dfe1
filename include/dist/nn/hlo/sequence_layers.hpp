/// Layers of sequences in programs for XLA: embedding and attention.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/indexing.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/emitted.hpp>
#include <dist/nn/hlo/softmax.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>

namespace dist::nn {

/// The vector of an id that the table does not have is NaN, as no program throws.
template <std::size_t Words, std::size_t Width, class Initializer>
struct Emitted<Embedding<Words, Width, Initializer>> {
  template <class Placed, class Pass, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Pass&, X x, const Parameters& parameters, State&) {
    using T = typename X::Element;
    using Y = detail::TracedRows<X, typename Placed::Output>;
    const auto& [table] = parameters;
    const X ids = hlo::stop_gradient(x);
    const auto is_id = (ids >= X{0}) & (ids < X{static_cast<T>(Words)});
    const X known = hlo::select(is_id, X{0}, X{dist::detail::quiet_nan<T>});
    const Y rows = hlo::take(table, ids.template as<std::int32_t>());
    return rows + detail::along_last_axis<Y>(known);
  }
};

namespace detail {

/// Queries, keys or values: x · kernel + bias, [rows, length, heads, width].
template <class Pass, hlo::TracedArray X, hlo::TracedArray Kernel, hlo::TracedArray Bias>
[[nodiscard]] auto heads_of(const Pass& pass, X x, Kernel kernel, Bias bias) {
  const auto products = hlo::contract<2, 0>(pass.factor(x), pass.factor(kernel));
  return pass.of_factors(products + hlo::broadcast<std::remove_const_t<decltype(products)>, 2, 3>(bias));
}

}  // namespace detail

template <std::size_t Heads, std::size_t Width, class Reach, class KernelInitializer>
struct Emitted<MultiHeadAttention<Heads, Width, Reach, KernelInitializer>> {
  template <class Placed, class Pass, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Pass& pass, X x, const Parameters& parameters, State&) {
    using hlo::Axes;
    using T = typename X::Element;
    constexpr std::size_t length = Placed::length;
    using Weights = hlo::Traced<T, X::extents[0], Heads, length, length>;
    const auto& [query_kernel, query_bias, key_kernel, key_bias, value_kernel, value_bias, kernel, bias] = parameters;
    const auto queries = detail::heads_of(pass, x, query_kernel, query_bias);
    const auto keys = detail::heads_of(pass, x, key_kernel, key_bias);
    const auto values = detail::heads_of(pass, x, value_kernel, value_bias);
    Weights weights = hlo::contract<Axes<3>, Axes<3>, Axes<0, 2>, Axes<0, 2>>(queries, keys);
    weights *= Weights{T{1} / std::sqrt(static_cast<T>(Width))};
    if constexpr (Reach::is_causal) {
      using Places = typename Weights::template With<std::int32_t>;
      const auto is_past = hlo::iota<Places, 3>() <= hlo::iota<Places, 2>();
      weights = hlo::select(is_past, weights, Weights{-std::numeric_limits<T>::infinity()});
    }
    // [rows, heads, length, width], whose heads are brought together for each element of a sequence.
    const auto outputs = hlo::contract<Axes<3>, Axes<1>, Axes<0, 1>, Axes<0, 2>>(detail::softmax(weights), values);
    const X products = hlo::contract<Axes<1, 3>, Axes<0, 1>>(pass.factor(outputs), pass.factor(kernel));
    return pass.of_factors(products + hlo::broadcast<X, 2>(bias));
  }
};

}  // namespace dist::nn
