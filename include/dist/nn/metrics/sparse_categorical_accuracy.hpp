#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/deferred_tally.hpp>
#include <dist/nn/losses/values.hpp>
#include <dist/nn/metric.hpp>

namespace dist::nn {

namespace detail {
/// 1 for a row whose largest output is that of the right class.
template <class T, class Label>
struct IsRight {
  const T* values;
  const Label* labels;
  std::size_t classes;
  DIST_HD std::int64_t operator()(std::size_t row) const {
    if constexpr (std::signed_integral<Label>)
      if (labels[row] < 0) return 0;
    const std::size_t top = index_of_largest(Row<const T>{values + row * classes, classes});
    return static_cast<std::size_t>(labels[row]) == top ? 1 : 0;
  }
};
}  // namespace detail

/// How often the largest output is that of the right class; among equal outputs the first counts. Exact: both
/// counts are integers.
struct SparseCategoricalAccuracy {
  using Tally = nn::Tally<std::int64_t, std::int64_t>;

  std::string_view name = "accuracy";

  /// Outputs [rows, classes], labels [rows] or [rows, 1] of an integer type. Throws ShapeMismatch.
  template <Values Outputs, Values Labels>
    requires are_on_host<Outputs, Labels>
  [[nodiscard]] Tally operator()(const Outputs& outputs, const Labels& labels) const {
    const auto values = values_of(outputs);
    const auto classes = values_of(labels);
    static_assert(std::integral<std::remove_const_t<typename decltype(classes)::Element>>,
                  "SparseCategoricalAccuracy needs integer labels, one per example");
    require_targets(name, values, classes, 1);
    const std::size_t row_size = values.row_size();
    Tally tally{.total = 0, .count = static_cast<std::int64_t>(values.rows())};
    for (std::size_t row = 0; row < values.rows(); ++row) {
      const std::size_t top = index_of_largest(row_at(values.data(), row_size, row));
      if (std::cmp_equal(classes[row], top)) ++tally.total;
    }
    return tally;
  }

  /// The same in memory of a device.
  template <class Q, Values Outputs, Values Labels>
    requires(!are_on_host<Outputs, Labels>)
  [[nodiscard]] auto operator()(const Q& queue, const Outputs& outputs, const Labels& labels) const {
    const auto values = values_of(outputs);
    const auto classes = values_of(labels);
    using Label = std::remove_const_t<typename decltype(classes)::Element>;
    static_assert(std::integral<Label>, "SparseCategoricalAccuracy needs integer labels, one per example");
    require_targets(name, values, classes, 1);
    using T = std::remove_const_t<typename decltype(values)::Element>;
    const detail::IsRight<T, Label> is_right{values.data(), classes.data(), values.row_size()};
    return DeferredTally{queue.start_transform_reduce(sum, {0, values.rows()}, is_right),
                         [rows = static_cast<std::int64_t>(values.rows())](const auto& right) {
                           return Tally{right.value(), rows};
                         }};
  }
};

}  // namespace dist::nn
