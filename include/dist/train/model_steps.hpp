#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/future.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/loss_scale.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/metrics/row_metric.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/strategy/compile.hpp>
#include <dist/train/class_weights.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/measurements.hpp>

namespace dist::nn::detail {

template <class Batch>
concept HasFeaturesAndTargets = requires(const Batch& batch) {
  batch.x;
  batch.y;
};
template <class Batch>
concept IsTuple = requires {
  std::tuple_size<Batch>::value;
};

/// Returns the parts of a dataset's element that Model uses, as a tuple of references: features, targets, and optional
/// sample weights. `needed` is the minimum number of parts.
template <std::size_t needed, class Batch>
[[nodiscard]] constexpr auto parts_of_batch(const Batch& batch) {
  if constexpr (HasFeaturesAndTargets<Batch>) {
    return std::tie(batch.x, batch.y);
  } else if constexpr (IsTuple<Batch>) {
    constexpr std::size_t parts = std::tuple_size<Batch>::value;
    static_assert(
        parts >= needed && parts <= 3,
        "the elements of a model's dataset must be features and targets, or features, targets and sample weights");
    return std::apply([](const auto&... part) { return std::tie(part...); }, batch);
  } else {
    static_assert(needed == 1 || dist::detail::always_false<Batch>,
                  "the elements of a model's dataset must have features x and targets y: make them "
                  "dist::data::Example{x, y} or std::tuple{x, y}, with dist::data::map before dist::data::batch");
    return std::tie(batch);
  }
}

}  // namespace dist::nn::detail

namespace dist::nn {

/// A network with a separate inference mode.
template <class Network, class Replica, class X>
concept HasInference = requires(Network& network, const Replica& replica, const X& x) {
  network.forward(replica, x, inference);
};

namespace detail {

/// A network whose products round gradients to Float16, so that small ones underflow.
template <class Network>
concept RoundsToFloat16 =
    RoundsFactors<typename Network::Backend> && std::same_as<typename Network::Backend::Factor, Float16>;

/// Replaces LossScale for networks that need none.
struct UnscaledLoss {
  explicit UnscaledLoss(const auto&) {}
};

/// The steps of a replica in training, test and prediction, with their measurements: a Model without its loops. If the
/// network RoundsToFloat16, the loss has a LossScale, except with the option NoLossScale. Refers to the strategy and the
/// network.
template <class S, class Network, class O, class L, class... Ms>
class ModelSteps {
  using FitLoss = detail::FitLoss<L>;
  static constexpr bool scales_loss = RoundsToFloat16<Network> && !has_option<O, NoLossScale>;

 public:
  ModelSteps(S& strategy, Network& network, O optimizer, L loss, Ms... metrics)
      : strategy_(strategy),
        network_(network),
        loss_function_(std::move(loss)),
        optimizer_(of_strategy(strategy, network), network, std::move(optimizer)),
        trained_(strategy, metrics...),
        tested_(strategy, metrics...),
        loss_scale_(strategy),
        class_weights_(strategy.num_local_replicas()) {}

  [[nodiscard]] Network& network() const noexcept { return network_; }
  [[nodiscard]] Optimizer<S, Network, O>& optimizer() noexcept { return optimizer_; }
  [[nodiscard]] const Optimizer<S, Network, O>& optimizer() const noexcept { return optimizer_; }
  [[nodiscard]] const L& loss_function() const noexcept { return loss_function_; }
  [[nodiscard]] ClassWeights& class_weights() noexcept { return class_weights_; }

  /// The measurements of training and of tests are separate, because a callback may start a test during training.
  [[nodiscard]] Measures<S, Ms...>& trained() noexcept { return trained_; }
  [[nodiscard]] Measures<S, Ms...>& tested() noexcept { return tested_; }

  [[nodiscard]] std::optional<Better> better(std::string_view name) const { return trained_.better(name); }
  [[nodiscard]] std::string metric_names() const { return trained_.names(); }

  void track(auto& visit) {
    visit("network", network_);
    visit("optimizer", optimizer_);
    if constexpr (scales_loss) visit("loss_scale", loss_scale_);
    visit("metrics", trained_);
  }

  /// Updates the network with the rows of this replica; in a compiled step, traces the update.
  void train(const auto& replica, const auto& batch) {
    on_parts(batch, [&](const auto& x, const auto& targets, const auto&... sample_weight) {
      const auto outputs = network_.forward(replica, x);
      const auto learn = [&](const auto& weights) {
        const auto loss = fit_loss(replica, outputs, targets, weights);
        if constexpr (scales_loss) loss_scale_.apply(replica, outputs);
        backward(replica, loss);
        bool are_finite = true;
        if constexpr (scales_loss) are_finite = loss_scale_.remove(replica, network_);
        const auto penalty = start_penalty(replica);  // of the weights before the update
        if constexpr (FitLoss::is_regularized)
          add_regularization_gradients(replica, network_, loss_function_.regularizer);
        if (are_finite) optimizer_.apply_gradients(replica);
        report_loss(trained_, replica, loss, penalty);
        trained_.template measure<true>(replica, outputs, targets, weights);
      };
      if constexpr (InTrace<decltype(replica)>)
        class_weights_.weigh(replica, FitLoss::function(loss_function_), outputs, targets, learn, sample_weight...);
      else
        class_weights_.weigh(replica.local_index(), FitLoss::function(loss_function_), outputs, targets, learn,
                             sample_weight...);
      trained_.template measure<false>(replica, outputs, targets);
    });
  }
  /// Measures the network in inference mode.
  void test(const auto& replica, const auto& batch) {
    on_parts(batch, [&](const auto& x, const auto& targets, const auto&... sample_weight) {
      const auto outputs = infer(replica, x);
      report_loss(tested_, replica, test_loss(replica, outputs, targets, sample_weight...), start_penalty(replica));
      tested_.template measure<true>(replica, outputs, targets, sample_weight...);
      tested_.template measure<false>(replica, outputs, targets);
    });
  }
  /// Runs the network in inference mode, if it has one.
  template <class Replica, class X>
  auto infer(const Replica& replica, const X& x) {
    if constexpr (HasInference<Network, Replica, X>) {
      return network_.forward(replica, x, inference);
    } else {
      return network_.forward(replica, x);
    }
  }

  /// The functions of all replicas for their parts of a batch, compiled if the devices compile steps. They refer to
  /// this object.
  [[nodiscard]] auto train_step() {
    return dist::compile(strategy_, [this](auto& replica, const auto& part) { this->train(replica, part); });
  }
  [[nodiscard]] auto test_step() {
    return dist::compile(strategy_, [this](auto& replica, const auto& part) { this->test(replica, part); });
  }
  [[nodiscard]] auto infer_step() {
    return dist::compile(strategy_, [this](auto& replica, const auto& part) {
      return this->infer(replica, std::get<0>(parts_of_batch<1>(part)));
    });
  }

 private:
  /// Throws WrongStrategy if the network's variables belong to another strategy (spec Q02).
  static S& of_strategy(S& strategy, Network& network) {
    static_cast<void>(network.parameters().component(strategy.scope(), 0));
    return strategy;
  }

  /// Calls `use(features, targets)`, or `use(features, targets, sample weights)`, if the batch has targets.
  template <class Batch>
  static void on_parts(const Batch& batch, const auto& use) {
    const auto parts = parts_of_batch<2>(batch);
    if constexpr (std::tuple_size_v<std::remove_const_t<decltype(parts)>> >= 2) std::apply(use, parts);
  }

  /// Returns the number of examples of all replicas in this step; `mine` are of this one. A collective call.
  static std::size_t examples_of_step(const InReplica auto& replica, std::size_t mine) {
    return static_cast<std::size_t>(replica.all_reduce(sum, std::uint64_t{mine}));
  }

  /// Returns the loss of a batch, in training with gradients, or in a test. The sum over the replicas is the mean over
  /// all examples of the step that count.
  auto fit_loss(const InReplica auto& replica, const auto& outputs, const auto& targets, const auto& weights) {
    const auto& loss = FitLoss::function(loss_function_);
    std::size_t divisor = 1;
    if constexpr (!FitLoss::is_sum)
      divisor =
          examples_of_step(replica, counted_examples(replica.queue(), loss, values_of(outputs), values_of(targets)));
    return divided_loss(replica.queue(), loss, outputs, targets, divisor, weights);
  }
  template <class Weights = Unweighted>
  auto fit_loss(const InTrace auto& replica, const auto& outputs, const auto& targets, const Weights& weights = {}) {
    constexpr std::bool_constant<FitLoss::is_sum> is_sum;
    return traced_fit_loss(FitInTrace{}, is_sum, FitLoss::function(loss_function_), replica, outputs, targets, weights);
  }
  auto test_loss(const InReplica auto& replica, const auto& outputs, const auto& targets, const auto&... weights) {
    return start_total_loss(replica.queue(), FitLoss::function(loss_function_), values_of(outputs), values_of(targets),
                            weights...);
  }
  auto test_loss(const InTrace auto& replica, const auto& outputs, const auto& targets, const auto&... weights) {
    return fit_loss(replica, outputs, targets, weights...);
  }

  /// Applies gradients as soon as they are ready, if the optimizer supports that and they need no further changes.
  void backward(const InReplica auto& replica, const auto& loss) {
    if constexpr (!FitLoss::is_regularized && !scales_loss && Optimizer<S, Network, O>::applies_when_ready)
      network_.backward(replica, loss, optimizer_.when_ready(replica));
    else
      network_.backward(replica, loss);
  }

  void backward(const InTrace auto& replica, const auto& loss) { network_.backward(replica, loss.learned(replica)); }

  /// Returns the penalty of a regulariser: a Future, or a number of the program.
  auto start_penalty(const InReplica auto& replica) {
    if constexpr (FitLoss::is_regularized)
      return start_total_regularization(replica, network_, loss_function_.regularizer);
    else
      return Ready{0.0};
  }

  auto start_penalty(const InTrace auto& replica) {
    if constexpr (FitLoss::is_regularized)
      return total_regularization(replica, network_, loss_function_.regularizer);
    else
      return 0.0;
  }

  /// Adds to the loss in the logs, a mean over replicas and batches weighted by their examples: of the mean loss, or of
  /// the sum over all examples of the step (spec P06). The penalty of a regulariser is added unscaled.
  void report_loss(Measures<S, Ms...>& measures, const InReplica auto& replica, const auto& loss, const auto& penalty) {
    const double sum_factor = FitLoss::is_sum ? static_cast<double>(examples_of_step(replica, loss.examples())) : 1;
    const auto tally = [=](const auto& computed, double added) {
      const auto weight = static_cast<double>(computed.examples());
      return MeanValue::Tally{.total = computed.total() * sum_factor + added * weight, .count = weight};
    };
    if constexpr (Future<std::remove_cvref_t<decltype(loss)>>)
      measures.loss().add(replica, DeferredTally{detail::AllOf{loss, penalty}, [=](const auto& computed) {
                                                   return tally(computed.first, computed.second.value());
                                                 }});
    else
      measures.loss().add(replica, tally(loss, penalty.value()));
  }

  void report_loss(Measures<S, Ms...>& measures, const InTrace auto& replica, const auto& loss, const auto& penalty) {
    measures.loss().update(replica, loss.shown(replica) + penalty, loss.examples);
  }

  S& strategy_;
  Network& network_;
  L loss_function_;
  Optimizer<S, Network, O> optimizer_;
  Measures<S, Ms...> trained_;
  Measures<S, Ms...> tested_;
  [[no_unique_address]] std::conditional_t<scales_loss, LossScale<S>, UnscaledLoss> loss_scale_;
  ClassWeights class_weights_;
};

}  // namespace detail

}  // namespace dist::nn
