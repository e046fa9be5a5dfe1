/// The forms in which a loss computes the value and the gradient of one example, and the call of whichever it has.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// The mean over an example's elements of a function of an output and a target, both of type T: `element(output, target)`
/// is its value, `slope(output, target)` its derivative with respect to the output. Both are DIST_HD where networks on GPUs
/// use the loss.
template <class L, class T, class Target>
concept LossOfElements = requires(const L loss, T output, T target, Target given) {
  { loss.element(output, target) } -> std::same_as<T>;
  { loss.slope(output, target) } -> std::same_as<T>;
  static_cast<T>(given);
};
/// A function of rows: `per_example(outputs, targets)` is one example's loss; with a scale and a place for it, it also writes
/// the gradient with respect to the outputs times the scale. Both calls are DIST_HD where networks on GPUs use the loss.
template <class L, class T, class Target>
concept LossOfRows = requires(const L loss, Row<const T> row, Row<const Target> target, T scale, Row<T> gradient) {
  { loss.per_example(row, target) } -> std::same_as<T>;
  { loss.per_example(row, target, scale, gradient) } -> std::same_as<T>;
};
/// The same of spans, in memory of the host alone.
template <class L, class T, class Target>
concept LossOfSpans = requires(const L loss, std::span<const T> row, std::span<const Target> target, T scale,
                               std::span<T> gradient) {
  { loss.per_example(row, target) } -> std::same_as<T>;
  { loss.per_example(row, target, scale, gradient) } -> std::same_as<T>;
};

namespace detail {

/// A loss that devices compute.
template <class L, class T, class Target>
concept LossOnDevices = LossOfRows<L, T, Target> || LossOfElements<L, T, Target>;

template <class T>
[[nodiscard]] std::span<T> span_of(Row<T> row) {
  return {row.elements, row.count};
}

/// One example's loss.
template <class L, std::floating_point T, class Target>
[[nodiscard]] DIST_HD T loss_of_row(const L& loss, Row<const T> outputs, Row<const Target> targets) {
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
/// The same, and its gradient times `scale`.
template <class L, std::floating_point T, class Target>
DIST_HD T loss_of_row(const L& loss, Row<const T> outputs, Row<const Target> targets, T scale, Row<T> gradient) {
  if constexpr (LossOfRows<L, T, Target>) {
    return loss.per_example(outputs, targets, scale, gradient);
  } else if constexpr (LossOfElements<L, T, Target>) {
    const T factor = scale / static_cast<T>(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)  // alone, so that it is vectorised
      gradient[i] = factor * loss.slope(outputs[i], static_cast<T>(targets[i]));
    return loss_of_row(loss, outputs, targets);
  } else {
    return loss.per_example(span_of(outputs), span_of(targets), scale, span_of(gradient));
  }
}

/// A loss that says which outputs and targets fit each other.
template <class L, class Outputs, class Targets>
concept ChecksRows = requires(const L loss, Outputs outputs, Targets targets) {
  loss.check(outputs, targets);
};
/// Throws ShapeMismatch, or what the loss or the metric of that name throws, unless these fit: for one that does not say
/// otherwise, targets are of the outputs' shape.
template <class L, class T, class Target, dist::MemorySpace Where>
void check_rows(const L& loss, std::string_view name, TensorView<const T, Where> outputs,
                TensorView<const Target, Where> targets) {
  if constexpr (ChecksRows<L, TensorView<const T, Where>, TensorView<const Target, Where>>)
    loss.check(outputs, targets);
  else
    require_targets(name, outputs, targets, outputs.row_size(),
                    ", or a loss or metric whose member check(outputs, targets) takes these");
}

}  // namespace detail

}  // namespace dist::nn
