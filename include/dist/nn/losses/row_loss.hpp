/// The forms of a loss's value and gradient for one example, and their calls.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// A loss that is a mean over elements: `element(output, target)` is one element's value, `slope(output, target)` its
/// derivative by the output, in type T. Both must be DIST_HD in networks on GPUs.
template <class L, class T, class Target>
concept LossOfElements = requires(const L loss, T output, T target, Target given) {
  { loss.element(output, target) } -> std::same_as<T>;
  { loss.slope(output, target) } -> std::same_as<T>;
  static_cast<T>(given);
};
/// A loss of rows: `per_example(outputs, targets)` returns one example's loss; with a scale and a destination, it also
/// writes the gradient by the outputs times the scale. Both must be DIST_HD in networks on GPUs.
template <class L, class T, class Target>
concept LossOfRows = requires(const L loss, Row<const T> row, Row<const Target> target, T scale, Row<T> gradient) {
  { loss.per_example(row, target) } -> std::same_as<T>;
  { loss.per_example(row, target, scale, gradient) } -> std::same_as<T>;
};
/// A loss of rows as spans, in the host's memory only.
template <class L, class T, class Target>
concept LossOfSpans = requires(const L loss, std::span<const T> row, std::span<const Target> target, T scale,
                               std::span<T> gradient) {
  { loss.per_example(row, target) } -> std::same_as<T>;
  { loss.per_example(row, target, scale, gradient) } -> std::same_as<T>;
};

namespace detail {

/// A loss that devices can compute.
template <class L, class T, class Target>
concept LossOnDevices = LossOfRows<L, T, Target> || LossOfElements<L, T, Target>;

template <class T>
[[nodiscard]] std::span<T> span_of(Row<T> row) {
  return {row.elements, row.count};
}

/// Returns one example's loss; 0 if the loss leaves it out.
template <class L, std::floating_point T, class Target>
[[nodiscard]] DIST_HD T loss_of_row(const L& loss, Row<const T> outputs, Row<const Target> targets) {
  if (!is_counted(loss, targets)) return T{0};
  if constexpr (LossOfRows<L, T, Target>) {
    return loss.per_example(outputs, targets);
  } else if constexpr (LossOfElements<L, T, Target>) {
    T total = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) total += loss.element(outputs[i], static_cast<T>(targets[i]));
    return total / static_cast<T>(outputs.size());
  } else {
    return loss.per_example(span_of(outputs), span_of(targets));
  }
}
/// Returns one example's loss and writes its gradient times `scale`.
template <class L, std::floating_point T, class Target>
DIST_HD T loss_of_row(const L& loss, Row<const T> outputs, Row<const Target> targets, T scale, Row<T> gradient) {
  if (!is_counted(loss, targets)) {
    for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] = T{0};
    return T{0};
  }
  if constexpr (LossOfRows<L, T, Target>) {
    return loss.per_example(outputs, targets, scale, gradient);
  } else if constexpr (LossOfElements<L, T, Target>) {
    const T factor = scale / static_cast<T>(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)  // a separate loop vectorises
      gradient[i] = factor * loss.slope(outputs[i], static_cast<T>(targets[i]));
    return loss_of_row(loss, outputs, targets);
  } else {
    return loss.per_example(span_of(outputs), span_of(targets), scale, span_of(gradient));
  }
}

/// A batch as a loss or metric reads it, an example per row.
template <class T, class Target, dist::MemorySpace Where>
struct Examples {
  TensorView<const T, Where> outputs;
  TensorView<const Target, Where> targets;

  [[nodiscard]] Row<const T> output(std::size_t example) const {
    return row_at(outputs.data(), outputs.row_size(), example);
  }
  [[nodiscard]] Row<const Target> target(std::size_t example) const {
    return row_at(targets.data(), targets.row_size(), example);
  }
};

/// A loss with its own check of outputs and targets.
template <class L, class Outputs, class Targets>
concept ChecksRows = requires(const L loss, Outputs outputs, Targets targets) {
  loss.check(outputs, targets);
};
/// Returns the examples of a batch, after a check of the shapes, and the `check` of the loss or metric. Without
/// `check`, targets that are not labels must have the outputs' shape. Throws ShapeMismatch, and the errors of `check`.
template <class L, class T, class Target, dist::MemorySpace Where>
Examples<T, Target, Where> examples_of(const L& loss, std::string_view name, TensorView<const T, Where> outputs,
                                       TensorView<const Target, Where> targets) {
  constexpr bool has_check = ChecksRows<L, TensorView<const T, Where>, TensorView<const Target, Where>>;
  if constexpr (TakesLabels<L>) {
    require_labels(name, outputs, targets);
    const Examples<T, Target, Where> examples{rows_of_last_axis(outputs), {targets.data(), Shape{targets.size()}}};
    if constexpr (has_check) loss.check(examples.outputs, examples.targets);
    return examples;
  } else {
    if constexpr (has_check)
      loss.check(outputs, targets);
    else
      require_targets(name, outputs, targets, outputs.row_size(),
                      ", or use a loss or metric whose member check(outputs, targets) accepts these");
    if constexpr (AlongLastAxis<L>)
      return {rows_of_last_axis(outputs), {targets.data(), rows_of_last_axis(outputs).shape()}};
    else
      return {outputs, targets};
  }
}

}  // namespace detail

}  // namespace dist::nn
