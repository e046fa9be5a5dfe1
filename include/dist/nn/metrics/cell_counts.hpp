#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/row_loss.hpp>
#include <dist/nn/metrics/row_metric.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// A metric whose result is a function of weighted counts, in an array of `shape()`. `check()` throws InvalidArgument
/// for parameters out of range; `result(counts)` is for logs. `for_each_bin(outputs, targets, add)` calls `add(cell)`
/// for each cell in which a row counts; it must be DIST_HD in networks on GPUs.
///
/// `add.one_of(line, columns, column)` counts a row in one of the `columns` cells of a line; lines out of range are
/// ignored. It calls `column()`, the cell's index, only if needed, because GPUs visit each row for each cell. Targets
/// are declared as for MeasuresRows.
template <class M>
concept CountingMetric = requires(const M measure, TensorView<const double> counts) {
  measure.check();
  { measure.shape() } -> std::same_as<Shape>;
  { measure.result(counts) } -> std::same_as<double>;
};

namespace detail {

/// Not a lambda: nvcc compiles lambdas in host functions for the host only.
struct AddToCell {
  double* counts;
  double weight;
  DIST_HD void operator()(std::size_t cell) const { counts[cell] += weight; }
  template <class Column>
  DIST_HD void one_of(std::size_t line, std::size_t columns, const Column& column) const {
    (*this)(line * columns + column());  // `check` has rejected other lines
  }
};
/// Adds a row's weight to one cell's count.
template <class Weight>
struct AddIfCell {
  std::size_t cell;
  std::size_t row;
  const Weight& weight;
  double& counted;
  DIST_HD void operator()(std::size_t of_row) const {
    if (of_row == cell) counted += static_cast<double>(weight(row));
  }
  template <class Column>
  DIST_HD void one_of(std::size_t line, std::size_t columns, const Column& column) const {
    if (cell / columns == line) (*this)(line * columns + column());
  }
};
struct AddNowhere {
  DIST_HD void operator()(std::size_t) const {}
  DIST_HD void one_of(std::size_t, std::size_t, const auto&) const {}
};
template <class M, class T, class Target>
concept CountsRowsOf = requires(const M measure, Row<const T> outputs, Row<const Target> targets, AddNowhere add) {
  measure.for_each_bin(outputs, targets, add);
};

/// Adds all rows' counts to one cell. Cells run in parallel, without atomic operations.
template <class M, class T, class Target, class Weight>
struct CountIntoCell {
  M measure;
  const T* values;
  const Target* targets;
  std::size_t values_size, targets_size, rows;
  Weight weight;
  double* counts;

  DIST_HD void operator()(std::size_t cell) const {
    double counted = 0;
    for (std::size_t row = 0; row < rows; ++row) for_each_bin(row, AddIfCell<Weight>{cell, row, weight, counted});
    counts[cell] += counted;
  }
  template <class Add>
  DIST_HD void for_each_bin(std::size_t row, const Add& add) const {
    const Row<const Target> target{targets + row * targets_size, targets_size};
    if (is_counted(measure, target))
      measure.for_each_bin(Row<const T>{values + row * values_size, values_size}, target, add);
  }
};

/// Adds a batch to `counts`, by `queue`. Throws ShapeMismatch, and the measure's errors.
template <CountingMetric M, class Q, class Counts, Values Outputs, Values Targets, class Weights = Unweighted>
void count_cells([[maybe_unused]] const Q& queue, const M& measure, Counts counts, const Outputs& outputs,
                 const Targets& given, const Weights& sample_weight = {}) {
  const auto values = values_of(outputs);
  const auto targets = values_of(given);
  using T = std::remove_const_t<typename decltype(values)::Element>;
  using Target = std::remove_const_t<typename decltype(targets)::Element>;
  if constexpr (require_rows_of_metric<M, Target, CountsRowsOf<M, T, Target>>()) {
    static_assert(are_on_host<Outputs> == are_on_host<Targets>,
                  "the targets of a metric must be in the same memory as the outputs: copy them there");
    const auto examples = examples_of(measure, measure.name, values, targets);
    const auto weight = example_weights<M>(measure.name, sample_weight, values);
    const std::size_t rows = examples.outputs.rows();
    const CountIntoCell<M, T, Target, std::remove_const_t<decltype(weight)>> into_cell{
        without_name(measure),       values.data(), targets.data(), examples.outputs.row_size(),
        examples.targets.row_size(), rows,          weight,         counts.data()};
    if constexpr (are_on_host<Outputs, Targets>)
      for (std::size_t row = 0; row < rows; ++row)
        into_cell.for_each_bin(row, AddToCell{counts.data(), static_cast<double>(weight(row))});
    else
      queue.for_each({0, counts.size()}, into_cell);
  }
}

}  // namespace detail

}  // namespace dist::nn
