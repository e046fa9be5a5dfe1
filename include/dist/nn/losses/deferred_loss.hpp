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

/// A loss whose targets are looked at row by row: `takes(target, outputs)` says whether a row of so many outputs fits, and
/// `refuse(target, row, outputs)` throws.
template <class L, class Target>
concept LooksAtTargets = requires(const L loss, Row<const Target> target, Target first, std::size_t number) {
  { loss.takes(target, number) } -> std::same_as<bool>;
  loss.refuse(first, number, number);
};

inline constexpr std::size_t no_row = static_cast<std::size_t>(-1);

/// What rows give together: their losses, and the first of them whose target the loss does not take.
template <class Target>
struct CheckedTotal {
  double total;
  std::size_t refused_row;
  Target refused;
};
template <class Target>
struct AddCheckedTotals : dist::detail::IdentityFinish {
  using Record = CheckedTotal<Target>;
  template <std::same_as<Record>>
  static constexpr Record identity{0, no_row, Target{}};
  DIST_HD Record operator()(const Record& a, const Record& b) const {
    const Record& first = a.refused_row <= b.refused_row ? a : b;
    return {a.total + b.total, first.refused_row, first.refused};
  }
};

/// The loss of a row in memory of a device, for a sum of all. Writes the gradient and the loss where these have places. Where
/// the loss does not take the target, both are NaN.
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
        return CheckedTotal<Target>{keep(row, nan), row, target[0]};
      }
      return CheckedTotal<Target>{of(row, value, target), no_row, Target{}};
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

/// What one replica's examples contribute to the loss of a global batch, as an nn::Loss says it, where their outputs lie in
/// memory of a device: a Future, for which only those wait who ask for a number. Copies mean the same loss.
template <std::floating_point T, class L, Future Rows>
class DeferredLoss {
 public:
  using Reduced = T;

  /// That of no examples.
  DeferredLoss() = default;
  /// `rows` become the sum of the losses of so many examples, of which each has so many outputs.
  DeferredLoss(const L& loss, Rows rows, std::size_t examples, std::size_t outputs, std::size_t global_batch)
      : computed_(std::in_place, loss, std::move(rows), outputs), examples_(examples), global_batch_(global_batch) {}

  /// Waits. For all of them: throws InvalidArgument for targets that the loss does not take, and what a wait throws.
  [[nodiscard]] T value() const { return detail::part_of_global_batch<T>(total(), global_batch_); }
  /// Waits.
  [[nodiscard]] double total() const { return computed_ ? computed_->total() : 0; }
  [[nodiscard]] std::size_t examples() const noexcept { return examples_; }

  void wait() const { static_cast<void>(total()); }
  [[nodiscard]] bool is_done() const { return !computed_ || computed_->rows.is_done(); }

 private:
  struct Computed {
    Computed(const L& of, Rows started, std::size_t size) : loss(of), rows(std::move(started)), outputs(size) {}

    [[nodiscard]] double total() const {
      const auto sum = rows.value();
      if constexpr (std::same_as<decltype(sum), const double>) {
        return sum;
      } else {
        if (sum.refused_row != detail::no_row) loss.refuse(sum.refused, sum.refused_row, outputs);
        return sum.total;
      }
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

/// Lets a device compute the losses of rows in its memory, as LossOfRow has them.
template <class Q, class L, class T, class Target, dist::MemorySpace Where, class Weight>
[[nodiscard]] auto start_loss(const Q& queue, const L& loss, TensorView<const T, Where> values,
                              TensorView<const Target, Where> targets, T* gradient, T* losses, const Weight& weight,
                              T scale, std::size_t global_batch) {
  static_assert(dist::detail::satisfied<LossOnDevices<L, T, Target>>,
                "this loss is not one for devices: give it DIST_HD calls of per_example with nn::Row instead of "
                "std::span, or of element and slope");
  const LossOfRow<L, T, Target, Weight> of_row{
      loss, values.data(), targets.data(), gradient, losses, values.row_size(), targets.row_size(), weight, scale};
  const auto started = [&](auto rows) {
    return DeferredLoss<T, L, decltype(rows)>{loss, std::move(rows), values.rows(), values.row_size(), global_batch};
  };
  if constexpr (LooksAtTargets<L, Target>)
    return started(queue.start_transform_reduce(AddCheckedTotals<Target>{}, {0, values.rows()}, of_row));
  else
    return started(queue.start_transform_reduce(sum, {0, values.rows()}, of_row));
}

}  // namespace detail

}  // namespace dist::nn
