#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn {

/// The result of a network's forward pass: the values, and the place for the loss's gradient with respect to
/// them.
template <class A>
concept DifferentiableOutputs = requires(const A& outputs) {
  outputs.values.rows();
  outputs.gradient.size();
  { outputs.gradient.data() } -> std::same_as<std::remove_const_t<typename decltype(outputs.values)::Element>*>;
};

/// A tensor, a view of one, or the outputs of a network: whatever losses and metrics can look at row by row.
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

/// A read-only view of what was given, one example per row.
template <Values V>
[[nodiscard]] auto values_of(const V& given) {
  if constexpr (DifferentiableOutputs<V>) {
    return values_of(given.values);
  } else {
    return detail::constant_view(given);
  }
}

/// Whether the host may touch what was given.
template <Values... V>
inline constexpr bool are_on_host = (decltype(values_of(std::declval<const V&>()))::is_host_accessible && ...);

namespace detail {
/// Whether a value lies in `Where`; true for what is no tensor.
template <class Where, class V>
inline constexpr bool lies_in = true;
template <class Where, Values V>
inline constexpr bool lies_in<Where, V> = are_on_host<V> == Where::host_accessible;

/// Does not compile unless all values lie in `Where`, the memory that the caller reads; returns whether they do.
template <dist::MemorySpace Where, class... V>
[[nodiscard]] constexpr bool require_values_in() {
  constexpr bool fit = (lies_in<Where, V> && ...);
  static_assert(fit,
                "outputs, targets and weights must lie in the memory that this call reads, that of the host or that of "
                "the replica's device: copy them there");
  return fit;
}
}  // namespace detail

/// Throws ShapeMismatch unless there are as many targets as examples, each of `expected` elements; `reader`
/// names the loss or metric in the message. Without examples, targets of shape [0] come from a dataset without any
/// example to tell the extents.
template <class T, class Target, dist::MemorySpace Where, dist::MemorySpace TargetsWhere>
void require_targets(std::string_view reader, TensorView<const T, Where> outputs,
                     TensorView<const Target, TargetsWhere> targets, std::size_t expected,
                     std::string_view otherwise = {}) {
  if (outputs.rows() == 0 && targets.rows() == 0) return;  // a replica without rows leaves the error to the others
  if (outputs.rows() != targets.rows() || targets.row_size() != expected)
    throw ShapeMismatch(
        concat(reader, " got targets that do not fit the outputs"),
        concat("outputs ", to_string(outputs.shape()), ", targets ", to_string(targets.shape())),
        concat("Give one row of ", expected, expected == 1 ? " element" : " elements", " for each example", otherwise));
}

}  // namespace dist::nn
