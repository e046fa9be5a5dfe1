#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/losses/count_labels.hpp>
#include <dist/nn/losses/deferred_loss.hpp>
#include <dist/nn/losses/global_batch_size.hpp>
#include <dist/nn/losses/row_loss.hpp>
#include <dist/nn/values.hpp>

namespace dist::nn {

/// One replica's contribution to the loss of a global batch.
template <std::floating_point T>
class Loss {
 public:
  /// The result type of `strategy.reduce`.
  using Reduced = T;

  /// Creates the loss of zero examples.
  Loss() = default;
  /// The loss of `examples` examples with the sum `total`, of a global batch of `global_batch` examples.
  Loss(double total, std::size_t examples, std::size_t global_batch)
      : total_(total), examples_(examples), global_batch_(global_batch) {}

  /// Returns the sum of this replica's losses over the size of the global batch; summed over the replicas, the mean
  /// over the global batch (spec P01). 0 for an empty global batch.
  [[nodiscard]] T value() const noexcept { return detail::part_of_global_batch<T>(total_, global_batch_); }
  /// Returns the unscaled sum of `examples()` losses, for means over batches of different sizes (spec P06).
  [[nodiscard]] double total() const noexcept { return total_; }
  /// Returns the number of examples that count.
  [[nodiscard]] std::size_t examples() const noexcept { return examples_; }

 private:
  double total_ = 0;
  std::size_t examples_ = 0;
  std::size_t global_batch_ = 0;
};

/// The per-example part of a loss: a copyable functor of a form in losses/row_loss.hpp, on a row of outputs and of
/// targets, or on elements. Its `name` is for logs and messages. It may have a `check(outputs, targets)` that throws if
/// they do not fit; by default, their shapes must be equal. It may have a `require_target<Target>()` with a
/// static_assert for the type of targets.
template <class L, class T, class Target>
concept LossFunction = std::copyable<L> &&
    (LossOfRows<L, T, Target> || LossOfElements<L, T, Target> || LossOfSpans<L, T, Target>)&&requires {
  { L::name } -> std::convertible_to<std::string_view>;
};

/// Sample weights of 1.
struct Unweighted {};

namespace detail {

/// Each example's weight, on host or device.
template <class T>
struct UnitWeight {
  DIST_HD T operator()(std::size_t) const { return T{1}; }
};
template <class T, class Weight>
struct GivenWeight {
  const Weight* weights;
  std::size_t examples_of_weight;
  DIST_HD T operator()(std::size_t example) const { return static_cast<T>(weights[example / examples_of_weight]); }
};

/// Returns the number of examples with the same weight. Throws ShapeMismatch unless there is one weight per row of the
/// outputs, or one per example of a loss or metric `M` along the last axis.
template <class M, class T, dist::MemorySpace Where, class Weight>
[[nodiscard]] std::size_t examples_of_weight(std::string_view reader, TensorView<Weight, Where> weights,
                                             TensorView<const T, Where> outputs) {
  if (AlongLastAxis<M> && are_labels(outputs.shape(), weights.shape())) return 1;
  if (weights.rows() != outputs.rows() || weights.row_size() != 1)
    refuse_weights(reader, outputs.shape(), weights.shape());
  return outputs.rows() == 0 ? 1 : rows_of_examples<M>(outputs).rows() / outputs.rows();
}

/// Returns a function from the example of a loss or metric `M` to its weight. Throws ShapeMismatch unless there is one
/// number per row of the outputs, or per example.
template <class M, class T, dist::MemorySpace Where, class Weights>
[[nodiscard]] auto example_weights(std::string_view reader, const Weights& weights,
                                   TensorView<const T, Where> outputs) {
  if constexpr (!Values<Weights>) {
    static_assert(dist::detail::satisfied<std::same_as<Weights, Unweighted>>,
                  "sample weights are a tensor, or a view of one, with one number per example");
    return UnitWeight<T>{};
  } else {
    const auto given = values_of(weights);
    static_assert(Where::host_accessible == decltype(given)::is_host_accessible,
                  "sample weights must be in the same memory as the outputs: copy them there");
    return GivenWeight<T, std::remove_const_t<typename decltype(given)::Element>>{
        given.data(), examples_of_weight<M>(reader, given, outputs)};
  }
}

}  // namespace detail

/// Computes each example's unscaled loss, for `compute_average_loss`, without reduction (spec P04) or gradients (see
/// `compute_loss`). Throws ShapeMismatch.
template <class L, Values Outputs, Values Targets, class T>
void per_example_losses(const L& loss, const Outputs& outputs, const Targets& given, std::span<T> losses) {
  if constexpr (detail::require_values_in<HostMemory, Outputs, Targets>()) {
    const auto examples = detail::examples_of(loss, L::name, values_of(outputs), values_of(given));
    detail::require_places(L::name, losses.size(), examples.outputs.rows());
    for (std::size_t row = 0; row < losses.size(); ++row)
      losses[row] = detail::loss_of_row(loss, examples.output(row), examples.target(row));
  }
}

/// Computes each example's unscaled loss in device memory, by `queue`, and waits. Throws ShapeMismatch, and
/// InvalidArgument for targets that the loss does not accept.
template <class Q, class L, Values Outputs, Values Targets, class T, dist::MemorySpace Where>
void per_example_losses(const Q& queue, const L& loss, const Outputs& outputs, const Targets& given,
                        DeviceSpan<T, Where> losses) {
  if constexpr (detail::require_values_in<Where, Outputs, Targets>()) {
    const auto examples = detail::examples_of(loss, L::name, values_of(outputs), values_of(given));
    detail::require_places(L::name, losses.size(), examples.outputs.rows());
    detail::start_loss(queue, loss, examples, static_cast<T*>(nullptr), losses.data(), detail::UnitWeight<T>{}, T{1}, 1)
        .wait();
  }
}

/// Returns the weighted, unscaled sum of all examples' losses; 0 for an empty batch. Throws ShapeMismatch.
template <class T, class Target, LossFunction<T, Target> L, class Weights = Unweighted>
[[nodiscard]] double total_loss(const L& loss, TensorView<const T> outputs, TensorView<const Target> targets,
                                const Weights& sample_weight = {}) {
  const auto examples = detail::examples_of(loss, L::name, outputs, targets);
  const auto weight = detail::example_weights<L>(L::name, sample_weight, outputs);
  double total = 0;
  for (std::size_t row = 0; row < examples.outputs.rows(); ++row)
    total += static_cast<double>(weight(row) * detail::loss_of_row(loss, examples.output(row), examples.target(row)));
  return total;
}

namespace detail {

/// A loss with its own static_assert for target types.
template <class L, class Target>
concept RequiresTarget = requires {
  L::template require_target<Target>();
};

/// True if a loss accepts these targets; else a static_assert fails.
template <class L, class Output, class Targets>
[[nodiscard]] constexpr bool require_targets_of_loss() {
  constexpr bool has_rows = Values<Targets>;
  static_assert(has_rows,
                "the targets of a loss are a dist::Tensor, a dist::TensorView, or the outputs of a network: for other "
                "memory, make a dist::TensorView<const float>{data, shape}");
  if constexpr (has_rows) {
    using Target = std::remove_const_t<typename decltype(values_of(std::declval<const Targets&>()))::Element>;
    constexpr bool fits = LossFunction<L, Output, Target>;
    if constexpr (RequiresTarget<L, Target>)
      static_assert((L::template require_target<Target>(), true));
    else
      static_assert(fits, "this loss does not support outputs and targets of these types");
    return fits;
  }
  return has_rows;
}

/// Returns the number of examples that count in a loss; 0 if it is only known in device memory.
template <class L, class Outputs, class Targets>
[[nodiscard]] std::size_t known_examples(const L& loss, const Outputs& outputs, const Targets& targets) {
  if constexpr (Values<Targets>)
    if (are_on_host<Outputs, Targets> || !ignores_labels(loss))
      return counted_examples(Cpu::Queue{}, loss, values_of(outputs), values_of(targets));
  return 0;
}

/// Returns the sum of these examples' losses over `divisor`, and writes its gradient to `outputs.gradient`. In device
/// memory `queue` computes it, and only reading the result waits.
template <class Q, class L, DifferentiableOutputs Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] auto divided_loss([[maybe_unused]] const Q& queue, const L& loss, const Outputs& outputs,
                                const Targets& given, std::size_t divisor, const Weights& sample_weight = {}) {
  using T = std::remove_const_t<typename decltype(outputs.values)::Element>;
  if constexpr (require_targets_of_loss<L, T, Targets>()) {
    const auto values = values_of(outputs);
    const auto targets = values_of(given);
    static_assert(decltype(values)::is_host_accessible == decltype(targets)::is_host_accessible,
                  "the targets of a loss must be in the same memory as the network's outputs: copy them there");
    if constexpr (Q::Space::host_accessible) static_cast<void>(require_values_in<HostMemory, Outputs>());
    DIST_EXPECT(outputs.gradient.size() == values.size());
    const auto examples = examples_of(loss, L::name, values, targets);
    const auto weight = example_weights<L>(L::name, sample_weight, values);
    const T scale = divisor == 0 ? T{0} : static_cast<T>(1.0 / static_cast<double>(divisor));
    if constexpr (are_on_host<Outputs, Targets>) {
      const std::size_t size = examples.outputs.row_size();
      double total = 0;
      for (std::size_t row = 0; row < examples.outputs.rows(); ++row)
        total += static_cast<double>(weight(row) * loss_of_row(loss, examples.output(row), examples.target(row),
                                                               weight(row) * scale,
                                                               row_at(outputs.gradient.data(), size, row)));
      return Loss<T>{total, counted_examples(queue, loss, values, targets), divisor};
    } else {
      constexpr T* nowhere = nullptr;
      return start_loss(queue, loss, examples, outputs.gradient.data(), nowhere, weight, scale, divisor);
    }
  } else {
    return dist::detail::refused<Loss<T>>();
  }
}

}  // namespace detail

/// Starts the weighted, unscaled sum of all examples' losses by `queue`. Returns a Loss or DeferredLoss with a global
/// batch of 1.
template <class Q, class T, class Target, dist::MemorySpace Where, class L, class Weights = Unweighted>
[[nodiscard]] auto start_total_loss([[maybe_unused]] const Q& queue, const L& loss, TensorView<const T, Where> outputs,
                                    TensorView<const Target, Where> targets, const Weights& sample_weight = {}) {
  if constexpr (!detail::require_targets_of_loss<L, T, TensorView<const Target, Where>>()) {
    return dist::detail::refused<Loss<T>>();
  } else if constexpr (Where::host_accessible) {
    const double total = total_loss(loss, outputs, targets, sample_weight);
    return Loss<T>{total, detail::counted_examples(queue, loss, outputs, targets), 1};
  } else {
    static_cast<void>(detail::require_values_in<typename Q::Space, TensorView<const T, Where>>());
    const auto examples = detail::examples_of(loss, L::name, outputs, targets);
    constexpr T* nowhere = nullptr;
    const auto weight = detail::example_weights<L>(L::name, sample_weight, outputs);
    return detail::start_loss(queue, loss, examples, nowhere, nowhere, weight, T{1}, 1);
  }
}

/// Returns the loss of this replica's rows of a global batch of `global_batch` examples: an nn::Loss, or an
/// nn::DeferredLoss for outputs in device memory. Writes the gradient of `value()` to `outputs.gradient`; gradients
/// must be summed over the replicas, not averaged (spec P07). `sample_weight` is a tensor with one number per row, or
/// per example, which does not change the divisor, as in `compute_average_loss`.
///
/// An example is a row. In a loss along the last axis it is a row of this axis, so that outputs [rows, length, classes]
/// have rows * length examples; see `count_labels`.
///
/// Throws ShapeMismatch, and InvalidArgument if this replica has more examples than the global batch. For targets in
/// device memory that the loss does not accept, gradients are NaN, and reading the loss throws InvalidArgument.
template <class L, DifferentiableOutputs Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] auto compute_loss(const L& loss, const InReplica auto& replica, const Outputs& outputs,
                                const Targets& targets, GlobalBatchSize global_batch,
                                const Weights& sample_weight = {}) {
  detail::require_global_batch_size(global_batch, detail::known_examples(loss, outputs, targets),
                                    replica.replica_id().index(), replica.num_replicas_in_sync());
  return detail::divided_loss(replica.queue(), loss, outputs, targets, global_batch.value(), sample_weight);
}
/// Returns the loss of a traced step, a traced number, whose gradients follow from the program; NaN for a label out of
/// range. `global_batch` is a GlobalBatchSize, or the result of `count_labels`. Programs are defined with the
/// strategy's header, so this one does not include them.
template <class L, class Outputs, class Targets, class Weights = Unweighted>
[[nodiscard]] auto compute_loss(const L& loss, const InTrace auto& replica, const Outputs& outputs,
                                const Targets& targets, const auto& global_batch, const Weights& sample_weight = {}) {
  return traced_loss(loss, replica, outputs, targets, global_batch, sample_weight);
}

}  // namespace dist::nn
