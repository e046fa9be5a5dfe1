#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

namespace detail {

/// Refuses, in a sentence, labels that are no integers.
template <class Label>
constexpr void require_integer_labels() {
  static_assert(
      dist::detail::holds<std::integral<Label>>,
      "a sparse accuracy takes integer labels, the number of the class of each example: give a dist::Tensor of "
      "an integer type as targets, or for one row of classes for each example nn::CategoricalAccuracy");
}

}  // namespace detail

/// How often the largest output is that of the right class; among equal outputs the first counts. Outputs [rows, classes],
/// labels [rows] or [rows, 1] of an integer type.
struct SparseCategoricalAccuracy {
  static constexpr bool more_is_better = true;

  using Tally = nn::Tally<double, double>;

  std::string_view name = "accuracy";

  template <class Label>
  static constexpr void require_target() {
    detail::require_integer_labels<Label>();
  }
  /// Throws ShapeMismatch.
  template <class T, class Label, dist::Place Where>
  void check(TensorView<const T, Where> outputs, TensorView<const Label, Where> labels) const {
    require_targets(name, outputs, labels, 1);
  }
  template <class T, std::integral Label>
  [[nodiscard]] DIST_HD double of_row(Row<const T> outputs, Row<const Label> label) const {
    return class_of(label[0]) == index_of_largest(outputs) ? 1 : 0;
  }
};

}  // namespace dist::nn
