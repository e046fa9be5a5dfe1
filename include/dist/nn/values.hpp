#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
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

/// A loss or metric whose targets are labels: it declares `static constexpr bool takes_labels = true`. An example is a
/// row of the outputs' last axis, so that outputs [rows, length, classes] and labels [rows, length] have rows * length
/// examples. Its functions see outputs [examples, classes] and labels [examples].
template <class M>
concept TakesLabels = M::takes_labels;
/// A loss or metric of the rows of the outputs' last axis: its targets are labels, or have the outputs' shape, and it
/// declares `static constexpr bool is_along_last_axis = true`.
template <class M>
concept AlongLastAxis = TakesLabels<M> || M::is_along_last_axis;

/// For `ignore_class`: ignores no label.
inline constexpr std::int64_t ignore_none = std::numeric_limits<std::int64_t>::min();
/// A loss or metric that leaves out examples whose label is its `ignore_class`.
template <class M>
concept IgnoresClass = TakesLabels<M> && requires(const M measure) {
  { measure.ignore_class } -> std::same_as<const std::int64_t&>;
};

namespace detail {

/// True if a loss or metric leaves out some label.
template <class M>
[[nodiscard]] constexpr bool ignores_labels([[maybe_unused]] const M& measure) {
  if constexpr (IgnoresClass<M>) return measure.ignore_class != ignore_none;
  return false;
}
/// False for an example that a loss or metric leaves out.
template <class M, class Target>
[[nodiscard]] DIST_HD bool is_counted([[maybe_unused]] const M& measure, [[maybe_unused]] Row<const Target> target) {
  if constexpr (IgnoresClass<M>) return static_cast<std::int64_t>(target[0]) != measure.ignore_class;
  return true;
}

/// Returns the same elements as a matrix, with the rows of the last axis.
template <class T, dist::MemorySpace Where>
[[nodiscard]] TensorView<T, Where> rows_of_last_axis(TensorView<T, Where> view) {
  const Shape& shape = view.shape();
  const std::size_t last = shape.rank() < 2 ? 1 : shape[shape.rank() - 1];
  return {view.data(), Shape{last == 0 ? 0 : view.size() / last, last}};
}
/// Returns the outputs as the matrix that a loss or metric `M` reads, an example per row.
template <class M, class T, dist::MemorySpace Where>
[[nodiscard]] TensorView<T, Where> rows_of_examples(TensorView<T, Where> outputs) {
  if constexpr (AlongLastAxis<M>)
    return rows_of_last_axis(outputs);
  else
    return outputs;
}

}  // namespace detail

/// Throws ShapeMismatch unless there is one label for each row of the outputs' last axis. Trailing axes of extent 1 do
/// not matter. `reader` is the loss or metric in the message. An empty batch accepts empty labels of any shape.
template <class T, class Label, dist::MemorySpace Where, dist::MemorySpace LabelsWhere>
void require_labels(std::string_view reader, TensorView<const T, Where> outputs,
                    TensorView<const Label, LabelsWhere> labels) {
  if (outputs.rows() == 0 && labels.rows() == 0) return;  // an empty replica leaves the error to the others
  if (!detail::are_labels(outputs.shape(), labels.shape()))
    detail::refuse_labels(reader, outputs.shape(), labels.shape());
}

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
