#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// The rate of elements with target 1 and an output above the threshold, or target 0 and another output: the mean over
/// rows of the mean over elements. Targets have the outputs' shape. For logits use threshold 0 for a probability of
/// 0.5.
struct BinaryAccuracy {
  static constexpr bool more_is_better = true;

  using Tally = nn::Tally<double, double>;

  float threshold = 0.5f;  ///< outputs above it count as 1
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

/// The rate of rows whose largest output and largest target, the first of equal ones, have the same index. Targets have
/// the outputs' shape, [rows, classes] or [rows, …, classes].
struct CategoricalAccuracy {
  static constexpr bool more_is_better = true;
  static constexpr bool is_along_last_axis = true;

  using Tally = nn::Tally<double, double>;

  std::string_view name = "accuracy";

  template <class Outputs, class Targets>
  [[nodiscard]] DIST_HD auto of_row(Outputs outputs, Targets targets) const {
    return number_of(index_of_largest(outputs) == index_of_largest(targets));
  }
};

namespace detail {

/// Rejects labels that are not integers.
template <class Label>
constexpr void require_integer_labels() {
  static_assert(
      dist::detail::satisfied<std::integral<Label>>,
      "a sparse accuracy takes integer labels, the number of the class of each example: give a dist::Tensor of an "
      "integer type as targets, or use nn::CategoricalAccuracy for targets with one row of classes for each example");
}

}  // namespace detail

/// The rate of examples with the largest output, the first of equal ones, at the label's index. Outputs and labels are
/// as in nn::SparseCategoricalCrossentropy.
struct SparseCategoricalAccuracy {
  static constexpr bool more_is_better = true;
  static constexpr bool takes_labels = true;  ///< see MetricLowering

  using Tally = nn::Tally<double, double>;

  std::string_view name = "accuracy";
  std::int64_t ignore_class = ignore_none;  ///< the label of examples to leave out

  template <class Label>
  static constexpr void require_target() {
    detail::require_integer_labels<Label>();
  }
  template <class Outputs, class Labels>
    requires std::integral<typename Labels::Element>
  [[nodiscard]] DIST_HD auto of_row(Outputs outputs, Labels label) const {
    return number_of(class_of(label) == index_of_largest(outputs));
  }
};

namespace detail {
/// True if fewer than `k` outputs are greater than the label's, so ties count as top. False for labels out of range and
/// outputs that are not finite (as in TensorFlow).
template <class Outputs>
[[nodiscard]] DIST_HD auto is_in_top(Outputs outputs, auto label, std::size_t k) {
  using Number = typename Outputs::Number;
  const Number own = element_or_nan(outputs, label);
  const auto above = count_of(outputs, [&](auto i) { return outputs[i] > own; });
  return (own - own == Number{0}) & (above < static_cast<double>(k));
}
}  // namespace detail

/// The rate of examples with the label's output among the `k` largest; ties count as top. Outputs and labels are as
/// in nn::SparseCategoricalCrossentropy.
struct SparseTopKCategoricalAccuracy {
  static constexpr bool more_is_better = true;
  static constexpr bool takes_labels = true;  ///< see MetricLowering

  using Tally = nn::Tally<double, double>;

  std::size_t k = 5;  ///< number of outputs that count as top
  std::string_view name = "sparse_top_k_categorical_accuracy";
  std::int64_t ignore_class = ignore_none;  ///< the label of examples to leave out

  template <class Label>
  static constexpr void require_target() {
    detail::require_integer_labels<Label>();
  }
  template <class Outputs, class Labels>
    requires std::integral<typename Labels::Element>
  [[nodiscard]] DIST_HD auto of_row(Outputs outputs, Labels label) const {
    return number_of(detail::is_in_top(outputs, class_of(label), k));
  }
};

/// The rate of rows with the output of the largest target among the `k` largest; ties count as top. Targets have the
/// outputs' shape, [rows, classes] or [rows, …, classes].
struct TopKCategoricalAccuracy {
  static constexpr bool more_is_better = true;
  static constexpr bool is_along_last_axis = true;

  using Tally = nn::Tally<double, double>;

  std::size_t k = 5;  ///< number of outputs that count as top
  std::string_view name = "top_k_categorical_accuracy";

  template <class Outputs, class Targets>
  [[nodiscard]] DIST_HD auto of_row(Outputs outputs, Targets targets) const {
    return number_of(detail::is_in_top(outputs, index_of_largest(targets), k));
  }
};

}  // namespace dist::nn
