#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/sparse_categorical_accuracy.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

namespace detail {
/// Whether fewer than `k` outputs are above that of the class, so that equal ones are all among the largest. No class that
/// there is not, and none whose output is no finite number, is among them (as in TensorFlow).
template <class T>
[[nodiscard]] DIST_HD bool is_in_top(Row<const T> outputs, std::size_t label, std::size_t k) {
  if (label >= outputs.size()) return false;
  const T own = outputs[label];
  if (own - own != T{0}) return false;
  std::size_t above = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] > own) ++above;
  return above < k;
}
}  // namespace detail

/// How often the output of the right class is among the `k` largest; equal outputs are all among them. Outputs
/// [rows, classes], labels [rows] or [rows, 1] of an integer type.
struct SparseTopKCategoricalAccuracy {
  static constexpr bool more_is_better = true;

  using Tally = nn::Tally<double, double>;

  std::size_t k = 5;
  std::string_view name = "sparse_top_k_categorical_accuracy";

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
    return detail::is_in_top(outputs, class_of(label[0]), k) ? 1 : 0;
  }
};

}  // namespace dist::nn
