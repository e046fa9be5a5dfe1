#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/nn/loss.hpp>

namespace dist::nn {

/// Reductions of a replica's losses to one number, as types (spec P04, P05).
struct Reduction {
  /// No reduction: one loss per example.
  struct None {};
  /// The sum, not scaled by the number of replicas.
  struct Sum {};
  /// The mean over all replicas' rows, which Model::fit counts in each step: only there, as the default.
  struct SumOverBatchSize {};
  /// The reduction that Keras calls "auto".
  using Auto = SumOverBatchSize;
};

/// Selects nn::Model's functions for traced steps, in nn/hlo/traced_fit.hpp, which only strategies that compile steps
/// include.
struct FitInTrace {};

namespace detail {

/// A loss's properties for Model: the function of a row, and the reduction.
template <class L>
struct FitLoss {
  using Function = L;
  static constexpr bool is_one_number = true;
  static constexpr bool is_sum = false;
  static constexpr bool is_regularized = false;
  static const Function& function(const L& loss) { return loss; }
};

}  // namespace detail

/// A loss with its reduction: `nn::Reduced{nn::MeanSquaredError{}, nn::Reduction::Sum{}}`.
///
/// Call it in a replica function of a custom training loop, or give it to Model as the loss.
template <class L, class R>
struct Reduced {
  static_assert(!detail::FitLoss<L>::is_regularized,
                "nn::Reduced goes inside nn::Regularized: nn::Regularized{nn::Reduced{loss, reduction}, regularizer}");
  static_assert(std::same_as<R, Reduction::None> || std::same_as<R, Reduction::Sum> ||
                    std::same_as<R, Reduction::SumOverBatchSize>,
                "a loss is reduced by nn::Reduction::None, nn::Reduction::Sum or nn::Reduction::SumOverBatchSize");
  static constexpr std::string_view name = L::name;

  L loss;       ///< of one example
  R reduction;  ///< of the examples' losses

  /// Reduction::Sum: returns the sum over this replica's rows, and writes its gradient to `outputs.gradient`. Throws
  /// ShapeMismatch.
  template <InReplica Replica, class Outputs, class Targets, class Weights = Unweighted>
  [[nodiscard]] auto operator()(const Replica& replica, const Outputs& outputs, const Targets& targets,
                                const Weights& sample_weight = {}) const {
    require_loop_of_your_own();
    static_assert(!std::same_as<R, Reduction::None>,
                  "a loss with nn::Reduction::None needs memory for its values: call it with a std::span that has one "
                  "number per example");
    return detail::divided_loss(replica.queue(), loss, outputs, targets, 1, sample_weight);
  }
  /// Reduction::Sum in a traced step: returns the sum over this replica's rows, a traced number.
  template <InTrace Replica, class Outputs, class Targets, class Weights = Unweighted>
  [[nodiscard]] auto operator()(const Replica& replica, const Outputs& outputs, const Targets& targets,
                                const Weights& sample_weight = {}) const {
    require_loop_of_your_own();
    static_assert(!std::same_as<R, Reduction::None>,
                  "a loss with nn::Reduction::None has no memory for its values in a traced step: use "
                  "nn::Reduction::Sum or nn::compute_loss");
    return traced_sum_of_losses(loss, replica, outputs, targets, sample_weight, reduction);
  }
  /// Reduction::None: writes each row's loss to `losses`, without gradients (see `per_example_losses`). Throws
  /// ShapeMismatch.
  template <InReplica Replica, class Outputs, class Targets, class T>
    requires std::same_as<R, Reduction::None>
  void operator()(const Replica&, const Outputs& outputs, const Targets& targets, std::span<T> losses) const {
    per_example_losses(loss, outputs, targets, losses);
  }
  /// Reduction::None in device memory: writes each row's loss to `losses`, without gradients. Waits for the queue.
  template <InReplica Replica, class Outputs, class Targets, class T, dist::MemorySpace Where>
    requires std::same_as<R, Reduction::None>
  void operator()(const Replica& replica, const Outputs& outputs, const Targets& targets,
                  DeviceSpan<T, Where> losses) const {
    per_example_losses(replica.queue(), loss, outputs, targets, losses);
  }

 private:
  static constexpr void require_loop_of_your_own() {
    static_assert(!std::same_as<R, Reduction::SumOverBatchSize>,
                  "a custom training loop uses nn::Reduction::Sum or nn::Reduction::None (spec P04): a mean over the "
                  "local batch gives more weight to the examples of short batches; divide by the global batch size "
                  "with nn::compute_loss or nn::compute_average_loss");
  }
};

/// Deduces the loss and its reduction.
template <class L, class R>
Reduced(L, R) -> Reduced<L, R>;

namespace detail {
template <class L, class R>
struct FitLoss<Reduced<L, R>> {
  using Function = L;
  static constexpr bool is_one_number = !std::same_as<R, Reduction::None>;
  static constexpr bool is_sum = std::same_as<R, Reduction::Sum>;
  static constexpr bool is_regularized = false;
  static const Function& function(const Reduced<L, R>& loss) { return loss.loss; }
};
}  // namespace detail

}  // namespace dist::nn
