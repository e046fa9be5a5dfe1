#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/tensor.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn {

/// The result of a forward pass: values, and the destination of the loss's gradient.
template <class A>
concept DifferentiableOutputs = requires(const A& outputs) {
  outputs.values.rows();
  outputs.gradient.size();
  { outputs.gradient.data() } -> std::same_as<std::remove_const_t<typename decltype(outputs.values)::Element>*>;
};

/// Operands of losses and metrics: a tensor, a view, or a network's outputs.
template <class V>
concept Values = DifferentiableOutputs<V> || requires(const V& values) {
  typename V::Element;
  { values.rows() } -> std::same_as<std::size_t>;
};

namespace detail {
template <class T, dist::MemorySpace Where>
[[nodiscard]] TensorView<const std::remove_const_t<T>, Where> constant_view(TensorView<T, Where> view) {
  return view;
}
template <class T>
[[nodiscard]] TensorView<const T> constant_view(const Tensor<T>& tensor) {
  return tensor;
}
}  // namespace detail

/// Returns a read-only view, one example per row.
template <Values V>
[[nodiscard]] auto values_of(const V& given) {
  if constexpr (DifferentiableOutputs<V>) {
    return values_of(given.values);
  } else {
    return detail::constant_view(given);
  }
}

/// True if the host can access the operands.
template <Values... V>
inline constexpr bool are_on_host = (decltype(values_of(std::declval<const V&>()))::is_host_accessible && ...);

namespace detail {
/// True if a value is in `Where`, or is not a tensor.
template <class Where, class V>
inline constexpr bool lies_in = true;
template <class Where, Values V>
inline constexpr bool lies_in<Where, V> = are_on_host<V> == Where::host_accessible;

/// True if all values are in `Where`; else a static_assert fails.
template <dist::MemorySpace Where, class... V>
[[nodiscard]] constexpr bool require_values_in() {
  constexpr bool fit = (lies_in<Where, V> && ...);
  static_assert(fit,
                "outputs, targets and weights must be in the memory that this call reads, on the host or on the "
                "replica's device: copy them there");
  return fit;
}

}  // namespace detail

/// Throws ShapeMismatch unless each example has a target of `expected` elements. `reader` is the loss or metric in the
/// message. An empty batch accepts empty targets of any shape, because an empty dataset has no extents.
template <class T, class Target, dist::MemorySpace Where, dist::MemorySpace TargetsWhere>
void require_targets(std::string_view reader, TensorView<const T, Where> outputs,
                     TensorView<const Target, TargetsWhere> targets, std::size_t expected,
                     std::string_view otherwise = {}) {
  if (outputs.rows() == 0 && targets.rows() == 0) return;  // an empty replica leaves the error to the others
  if (outputs.rows() != targets.rows() || targets.row_size() != expected)
    detail::refuse_targets(reader, outputs.shape(), targets.shape(), expected, otherwise);
}

}  // namespace dist::nn
