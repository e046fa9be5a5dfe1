#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// How often a target is 1 and its output above the threshold, or 0 and not above it: the mean over rows of the mean over a
/// row's elements. Targets have the outputs' shape. For logits the threshold 0 is that of a probability of 0.5.
struct BinaryAccuracy {
  static constexpr bool more_is_better = true;

  using Tally = nn::Tally<double, double>;

  float threshold = 0.5f;
  std::string_view name = "binary_accuracy";

  template <class Outputs, class Targets>
  [[nodiscard]] DIST_HD auto of_row(Outputs outputs, Targets targets) const {
    using Target = typename Targets::Element;
    const auto right = sum_of(outputs, [&](auto i) {
      const auto is_yes = number_of(outputs[i] > static_cast<typename Outputs::Element>(threshold));
      return is_yes * number_of(targets[i] == Target{1}) + (1 - is_yes) * number_of(targets[i] == Target{0});
    });
    return right / static_cast<double>(outputs.size());
  }
};

/// How often the largest output is that of the class with the largest target; among equal numbers the first counts. Targets
/// have the outputs' shape, [rows, classes].
struct CategoricalAccuracy {
  static constexpr bool more_is_better = true;

  using Tally = nn::Tally<double, double>;

  std::string_view name = "accuracy";

  template <class Outputs, class Targets>
  [[nodiscard]] DIST_HD auto of_row(Outputs outputs, Targets targets) const {
    return number_of(index_of_largest(outputs) == index_of_largest(targets));
  }
};

namespace detail {

/// Refuses, in a sentence, labels that are no integers.
template <class Label>
constexpr void require_integer_labels() {
  static_assert(
      dist::detail::satisfied<std::integral<Label>>,
      "a sparse accuracy takes integer labels, the number of the class of each example: give a dist::Tensor of "
      "an integer type as targets, or for one row of classes for each example nn::CategoricalAccuracy");
}

}  // namespace detail

/// How often the largest output is that of the right class; among equal outputs the first counts. Outputs [rows, classes],
/// labels [rows] or [rows, 1] of an integer type.
struct SparseCategoricalAccuracy {
  static constexpr bool more_is_better = true;
  static constexpr bool takes_labels = true;  ///< see MetricLowering

  using Tally = nn::Tally<double, double>;

  std::string_view name = "accuracy";

  template <class Label>
  static constexpr void require_target() {
    detail::require_integer_labels<Label>();
  }
  /// Throws ShapeMismatch.
  template <class T, class Label, dist::MemorySpace Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Label, Where> labels) const {
    require_targets(name, outputs, labels, 1);
  }
  template <class Outputs, class Labels>
    requires std::integral<typename Labels::Element>
  [[nodiscard]] DIST_HD auto of_row(Outputs outputs, Labels label) const {
    return number_of(class_of(label) == index_of_largest(outputs));
  }
};

namespace detail {
/// Whether fewer than `k` outputs are above that of the class, so that equal ones are all among the largest. No class that
/// there is not, and none whose output is no finite number, is among them (as in TensorFlow).
template <class Outputs>
[[nodiscard]] DIST_HD auto is_in_top(Outputs outputs, auto label, std::size_t k) {
  using Number = typename Outputs::Number;
  const Number own = element_or_nan(outputs, label);
  const auto above = count_of(outputs, [&](auto i) { return outputs[i] > own; });
  return (own - own == Number{0}) & (above < static_cast<double>(k));
}
}  // namespace detail

/// How often the output of the right class is among the `k` largest; equal outputs are all among them. Outputs
/// [rows, classes], labels [rows] or [rows, 1] of an integer type.
struct SparseTopKCategoricalAccuracy {
  static constexpr bool more_is_better = true;
  static constexpr bool takes_labels = true;  ///< see MetricLowering

  using Tally = nn::Tally<double, double>;

  std::size_t k = 5;
  std::string_view name = "sparse_top_k_categorical_accuracy";

  template <class Label>
  static constexpr void require_target() {
    detail::require_integer_labels<Label>();
  }
  /// Throws ShapeMismatch.
  template <class T, class Label, dist::MemorySpace Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Label, Where> labels) const {
    require_targets(name, outputs, labels, 1);
  }
  template <class Outputs, class Labels>
    requires std::integral<typename Labels::Element>
  [[nodiscard]] DIST_HD auto of_row(Outputs outputs, Labels label) const {
    return number_of(detail::is_in_top(outputs, class_of(label), k));
  }
};

/// How often the output of the class with the largest target is among the `k` largest; equal outputs are all among them.
/// Targets have the outputs' shape, [rows, classes].
struct TopKCategoricalAccuracy {
  static constexpr bool more_is_better = true;

  using Tally = nn::Tally<double, double>;

  std::size_t k = 5;
  std::string_view name = "top_k_categorical_accuracy";

  template <class Outputs, class Targets>
  [[nodiscard]] DIST_HD auto of_row(Outputs outputs, Targets targets) const {
    return number_of(detail::is_in_top(outputs, index_of_largest(targets), k));
  }
};

}  // namespace dist::nn
