#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/future.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/losses/global_batch_size.hpp>
#include <dist/nn/losses/row_loss.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

namespace detail {

/// A loss that checks targets row by row: `takes(target, outputs)` is true if a target fits a row of `outputs`
/// elements; `refuse(target, row, outputs)` throws.
template <class L, class Target>
concept LooksAtTargets = requires(const L loss, Row<const Target> target, Target first, std::size_t number) {
  { loss.takes(target, number) } -> std::same_as<bool>;
  loss.refuse(first, number, number);
};

inline constexpr std::size_t no_row = static_cast<std::size_t>(-1);

/// The sum of rows' losses, the number of rows that count, and the first rejected target.
template <class Target>
struct CheckedTotal {
  double total;
  std::size_t examples;
  std::size_t refused_row;
  Target refused;
};
template <class Target>
struct AddCheckedTotals : dist::detail::IdentityFinish {
  using Record = CheckedTotal<Target>;
  template <std::same_as<Record>>
  static constexpr Record identity{0, 0, no_row, Target{}};
  DIST_HD Record operator()(const Record& a, const Record& b) const {
    const Record& first = a.refused_row <= b.refused_row ? a : b;
    return {a.total + b.total, a.examples + b.examples, first.refused_row, first.refused};
  }
};

/// Computes a row's loss in device memory. Writes gradient and loss unless null, as NaN if the loss rejects the target.
template <class L, class T, class Target, class Weight>
struct LossOfRow {
  L loss;
  const T* values;
  const Target* targets;
  T* gradient;
  T* losses;
  std::size_t values_size, targets_size;
  Weight weight;
  T scale;

  DIST_HD auto operator()(std::size_t row) const {
    const Row<const T> value{values + row * values_size, values_size};
    const Row<const Target> target{targets + row * targets_size, targets_size};
    if constexpr (LooksAtTargets<L, Target>) {
      if (!loss.takes(target, values_size)) {
        const T nan = dist::detail::quiet_nan<T>;
        if (gradient != nullptr)
          for (std::size_t k = 0; k < values_size; ++k) gradient[row * values_size + k] = nan;
        return CheckedTotal<Target>{keep(row, nan), 1, row, target[0]};
      }
      const std::size_t counted = is_counted(loss, target) ? 1 : 0;
      return CheckedTotal<Target>{of(row, value, target), counted, no_row, Target{}};
    } else {
      return of(row, value, target);
    }
  }

 private:
  DIST_HD double of(std::size_t row, Row<const T> value, Row<const Target> target) const {
    const T factor = weight(row);
    if (gradient == nullptr) return keep(row, factor * loss_of_row(loss, value, target));
    const Row<T> slope{gradient + row * values_size, values_size};
    return keep(row, factor * loss_of_row(loss, value, target, factor * scale, slope));
  }
  DIST_HD double keep(std::size_t row, T of_row) const {
    if (losses != nullptr) losses[row] = of_row;
    return static_cast<double>(of_row);
  }
};

}  // namespace detail

/// One replica's contribution to the loss of a global batch, like nn::Loss, for outputs in device memory: a Future,
/// where only reading waits. Copies refer to the same loss.
template <std::floating_point T, class L, Future Rows>
class DeferredLoss {
 public:
  /// The result type of `strategy.reduce`.
  using Reduced = T;

  /// Creates the loss of zero examples.
  DeferredLoss() = default;
  /// `rows` computes the sum for `examples` examples with `outputs` outputs each.
  DeferredLoss(const L& loss, Rows rows, std::size_t examples, std::size_t outputs, std::size_t global_batch)
      : computed_(std::in_place, loss, std::move(rows), outputs), examples_(examples), global_batch_(global_batch) {}

  /// Returns the loss; waits for it. Throws InvalidArgument for targets that the loss rejects, and the wait's errors.
  [[nodiscard]] T value() const { return detail::part_of_global_batch<T>(total(), global_batch_); }
  /// Returns the unscaled sum; waits for it, and throws like `value`.
  [[nodiscard]] double total() const { return computed_ ? computed_->total() : 0; }
  /// Returns the number of examples that count. Waits only if the loss ignores labels, and then throws like `value`.
  [[nodiscard]] std::size_t examples() const {
    if constexpr (IgnoresClass<L>)
      if (computed_ && detail::ignores_labels(computed_->loss)) return computed_->checked().examples;
    return examples_;
  }

  void wait() const { static_cast<void>(total()); }
  [[nodiscard]] bool is_done() const { return !computed_ || computed_->rows.is_done(); }

 private:
  struct Computed {
    Computed(const L& of, Rows started, std::size_t size) : loss(of), rows(std::move(started)), outputs(size) {}

    [[nodiscard]] double total() const {
      if constexpr (std::same_as<decltype(rows.value()), double>)
        return rows.value();
      else
        return checked().total;
    }
    /// Returns the CheckedTotal.
    [[nodiscard]] auto checked() const {
      const auto sum = rows.value();
      if (sum.refused_row != detail::no_row) loss.refuse(sum.refused, sum.refused_row, outputs);
      return sum;
    }

    L loss;
    Rows rows;
    std::size_t outputs;
  };

  std::optional<Computed> computed_;
  std::size_t examples_ = 0;
  std::size_t global_batch_ = 0;
};

namespace detail {

/// Starts LossOfRow for examples in device memory. Returns a DeferredLoss.
template <class Q, class L, class T, class Target, dist::MemorySpace Where, class Weight>
[[nodiscard]] auto start_loss(const Q& queue, const L& loss, const Examples<T, Target, Where>& examples, T* gradient,
                              T* losses, const Weight& weight, T scale, std::size_t global_batch) {
  static_assert(dist::detail::satisfied<LossOnDevices<L, T, Target>>,
                "this loss cannot be computed on devices: give it DIST_HD functions per_example, with nn::Row instead "
                "of std::span, or element and slope");
  const auto& [values, targets] = examples;
  const LossOfRow<L, T, Target, Weight> of_row{
      loss, values.data(), targets.data(), gradient, losses, values.row_size(), targets.row_size(), weight, scale};
  const auto started = [&](auto rows) {
    return DeferredLoss<T, L, decltype(rows)>{loss, std::move(rows), examples.outputs.rows(),
                                              examples.outputs.row_size(), global_batch};
  };
  if constexpr (LooksAtTargets<L, Target>)
    return started(queue.start_transform_reduce(AddCheckedTotals<Target>{}, {0, values.rows()}, of_row));
  else
    return started(queue.start_transform_reduce(sum, {0, values.rows()}, of_row));
}

}  // namespace detail

}  // namespace dist::nn
