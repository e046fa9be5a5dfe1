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
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/row_loss.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// A metric that is the mean over rows, weighted or not, of a number that it sees in a row of outputs and one of targets:
/// `of_row(outputs, targets)`, DIST_HD where networks on GPUs use it. Its Tally holds doubles. As a loss, it may have a
/// `check(outputs, targets)`, without which targets are of the outputs' shape, and a `require_target<Target>()`, which
/// refuses targets of other types in a sentence.
template <class M>
concept MeasuresRows = requires(const M measure, Row<const float> outputs, Row<const std::int32_t> targets) {
  { measure.of_row(outputs, targets) } -> std::same_as<double>;
};

namespace detail {

template <class M, class T, class Target, class Weight>
struct WeightedRow {
  M measure;
  const T* values;
  const Target* targets;
  std::size_t values_size, targets_size;
  Weight weight;
  DIST_HD double operator()(std::size_t row) const {
    return static_cast<double>(weight(row)) *
           measure.of_row(Row<const T>{values + row * values_size, values_size},
                          Row<const Target>{targets + row * targets_size, targets_size});
  }
};
template <class Weight>
struct WeightOfRow {
  Weight weight;
  DIST_HD double operator()(std::size_t row) const { return static_cast<double>(weight(row)); }
};

/// The sum of the rows' weights, by the queue where they lie: a Future.
template <class Q, class Weight>
[[nodiscard]] auto start_sum_of_weights(const Q& queue, std::size_t rows, const Weight& weight) {
  return queue.start_transform_reduce(sum, {0, rows}, WeightOfRow<Weight>{weight});
}

/// A metric whose name is a field of it.
template <class M>
concept KeepsName = requires(M measure) {
  measure.name = std::string_view{};
};
/// As a kernel takes it: the characters of the name lie in the host's memory.
template <class M>
[[nodiscard]] M without_name(M measure) {
  if constexpr (KeepsName<M>) measure.name = {};
  return measure;
}

template <class M, class T, class Target>
concept MeasuresRowsOf = requires(const M measure, Row<const T> outputs, Row<const Target> targets) {
  { measure.of_row(outputs, targets) } -> std::same_as<double>;
};
/// Refuses, in a sentence, outputs and targets that a metric does not take, and says whether it takes them.
template <class M, class Target, bool fits>
[[nodiscard]] constexpr bool require_rows_of_metric() {
  if constexpr (RequiresTarget<M, Target>)
    M::template require_target<Target>();
  else
    static_assert(fits, "this metric does not work on outputs and targets of these types");
  return fits;
}

/// What a batch adds to a metric, measured by the queue where it lies: a Tally, or a DeferredTally in memory of a device.
/// Throws ShapeMismatch.
template <MeasuresRows M, class Q, Values Outputs, Values Targets, class Weights = Unweighted>
[[nodiscard]] auto measure_rows([[maybe_unused]] const Q& queue, const M& measure, const Outputs& outputs,
                                const Targets& given, const Weights& sample_weight = {}) {
  const auto values = values_of(outputs);
  const auto targets = values_of(given);
  using T = std::remove_const_t<typename decltype(values)::Element>;
  using Target = std::remove_const_t<typename decltype(targets)::Element>;
  using Tally = typename M::Tally;
  if constexpr (require_rows_of_metric<M, Target, MeasuresRowsOf<M, T, Target>>()) {
    static_assert(are_on_host<Outputs> == are_on_host<Targets>,
                  "the targets of a metric lie where the outputs do: copy them there");
    check_rows(measure, measure.name, values, targets);
    const auto weight = row_weights(measure.name, sample_weight, values);
    const WeightedRow<M, T, Target, std::remove_const_t<decltype(weight)>> of_row{
        without_name(measure), values.data(), targets.data(), values.row_size(), targets.row_size(), weight};
    const IndexRange rows{0, values.rows()};
    if constexpr (are_on_host<Outputs, Targets>) {
      Tally tally{};
      for (std::size_t row = 0; row < rows.end; ++row) {
        tally.total += of_row(row);
        tally.count += static_cast<double>(weight(row));
      }
      return tally;
    } else if constexpr (Values<Weights>) {
      return DeferredTally{
          AllOf{queue.start_transform_reduce(sum, rows, of_row), start_sum_of_weights(queue, rows.end, weight)},
          [](const auto& measured) {
            return Tally{measured.first.value(), measured.second.value()};
          }};
    } else {
      return DeferredTally{queue.start_transform_reduce(sum, rows, of_row),
                           [count = static_cast<double>(rows.end)](const auto& measured) {
                             return Tally{measured.value(), count};
                           }};
    }
  } else {
    return dist::detail::refused<Tally>();
  }
}

}  // namespace detail

}  // namespace dist::nn
