/// Layers of sequences in programs for XLA: embedding and attention.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/indexing.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/hlo/rows.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/softmax.hpp>

namespace dist::nn {

namespace detail {

/// What the last axis of an array was reduced to, along that axis.
template <hlo::TracedArray X, hlo::TracedArray Reduced>
[[nodiscard]] X along_last_axis(Reduced reduced) {
  return [&]<std::size_t... Axis>(std::index_sequence<Axis...>) { return hlo::broadcast<X, Axis...>(reduced); }
  (std::make_index_sequence<X::rank - 1>{});
}

template <hlo::TracedArray X>
[[nodiscard]] X softmax(X x) {
  X y = x;
  softmax(TracedThreads<X::rank - 1>{}, TracedElements<const X>{x}, TracedElements<X>{y});
  return y;
}

}  // namespace detail

template <>
struct Lowering<Softmax> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters&, State&) {
    return detail::softmax(x);
  }
};

/// The vector of an id that the table does not have is NaN, as no program throws.
template <std::size_t Words, std::size_t Width, class Initializer>
struct Lowering<Embedding<Words, Width, Initializer>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters& parameters, State&) {
    using T = typename X::Element;
    using Y = detail::TracedRows<X, typename Bound::Output>;
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
template <class Arguments, hlo::TracedArray X, hlo::TracedArray Kernel, hlo::TracedArray Bias>
[[nodiscard]] auto heads_of(const Arguments& arguments, X x, Kernel kernel, Bias bias) {
  const auto products = hlo::contract<2, 0>(arguments.factor(x), arguments.factor(kernel));
  return arguments.of_factors(products + hlo::broadcast<std::remove_const_t<decltype(products)>, 2, 3>(bias));
}

}  // namespace detail

template <std::size_t Heads, std::size_t Width, class Reach, class KernelInitializer>
struct Lowering<MultiHeadAttention<Heads, Width, Reach, KernelInitializer>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State&) {
    using hlo::Axes;
    using T = typename X::Element;
    constexpr std::size_t length = Bound::length;
    using Weights = hlo::Traced<T, X::extents[0], Heads, length, length>;
    const auto& [query_kernel, query_bias, key_kernel, key_bias, value_kernel, value_bias, kernel, bias] = parameters;
    const auto queries = detail::heads_of(arguments, x, query_kernel, query_bias);
    const auto keys = detail::heads_of(arguments, x, key_kernel, key_bias);
    const auto values = detail::heads_of(arguments, x, value_kernel, value_bias);
    Weights weights = hlo::contract<Axes<3>, Axes<3>, Axes<0, 2>, Axes<0, 2>>(queries, keys);
    weights *= Weights{T{1} / std::sqrt(static_cast<T>(Width))};
    if constexpr (Reach::is_causal) {
      using Places = typename Weights::template With<std::int32_t>;
      const auto is_past = hlo::iota<Places, 3>() <= hlo::iota<Places, 2>();
      weights = hlo::select(is_past, weights, Weights{-std::numeric_limits<T>::infinity()});
    }
    // [rows, heads, length, width], whose heads are brought together for each element of a sequence.
    const auto outputs = hlo::contract<Axes<3>, Axes<1>, Axes<0, 1>, Axes<0, 2>>(detail::softmax(weights), values);
    const X products = hlo::contract<Axes<1, 3>, Axes<0, 1>>(arguments.factor(outputs), arguments.factor(kernel));
    return arguments.of_factors(products + hlo::broadcast<X, 2>(bias));
  }
};

}  // namespace dist::nn
