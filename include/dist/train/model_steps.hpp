#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/track.hpp>
#include <dist/core/work.hpp>
#include <dist/nn/deferred_tally.hpp>
#include <dist/nn/forward_mode.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_value.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/train/batch_parts.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/class_weights.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_metric.hpp>

namespace dist::nn {

/// A network that computes otherwise in inference than in training.
template <class Network, class Replica, class X>
concept HasInference = requires(Network& network, const Replica& replica, const X& x) {
  network.forward(replica, x, inference);
};

/// An optimizer that applies gradients while others are still computed: `when_ready(replica)` is for `Network::backward`.
template <class O>
concept AppliesWhenReady = requires {
  requires O::applies_when_ready;
};

namespace detail {

/// What a replica does with its part of a batch, in training, in a test and in a prediction, and what is measured of it:
/// all of a Model but its loops. Refers to the strategy and the network.
template <class S, class Network, class O, class L, class... Ms>
class ModelSteps {
  using FitLoss = detail::FitLoss<L>;

 public:
  ModelSteps(S& strategy, Network& network, O optimizer, L loss, Ms... metrics)
      : strategy_(strategy),
        network_(network),
        loss_function_(std::move(loss)),
        optimizer_(of_strategy(strategy, network), network, std::move(optimizer)),
        loss_(strategy, MeanValue{.name = "loss"}),
        metrics_(ModelMetric<S, Ms>{strategy, std::move(metrics)}...),
        class_weights_(strategy.num_local_replicas()) {
    logs_.set(loss_.name(), 0);
    each_metric([&](auto& metric) {
      if (!metric.is_weighted) require_new_name(metric.name());
    });
    each_metric([&](auto& metric) {
      if (!metric.is_weighted) return;
      if (logs_.find(metric.name()) != nullptr) metric.rename(text("weighted_", metric.name()));
      require_new_name(metric.name());
    });
  }

  [[nodiscard]] Network& network() const noexcept { return network_; }
  [[nodiscard]] Optimizer<S, Network, O>& optimizer() noexcept { return optimizer_; }
  [[nodiscard]] ClassWeights& class_weights() noexcept { return class_weights_; }

  void track(auto& visit) {
    visit("network", network_);
    visit("optimizer", optimizer_);
    track_metrics(visit);
  }
  /// The loss and the metrics alone.
  void track_metrics(auto& visit) {
    const auto metric = [&](auto& one) { visit(text("metrics/", one.name()), one); };
    metric(loss_);
    each_metric(metric);
  }

  /// One update of the network with the rows of this replica.
  void train(const InReplica auto& replica, const auto& batch) {
    on_parts(batch, [&](const auto& x, const auto& targets, const auto&... sample_weight) {
      const auto outputs = network_.forward(replica, x);
      const std::size_t rows = values_of(outputs).rows();
      const std::size_t divisor = FitLoss::is_sum ? 1 : rows * replica.num_replicas_in_sync();
      const auto learn = [&](const auto& weights) {
        const auto loss =
            divided_loss(replica.queue(), FitLoss::function(loss_function_), outputs, targets, divisor, weights);
        backward(replica, loss);
        const auto penalty = start_penalty(replica);  // of the weights before the update
        if constexpr (FitLoss::is_regularized)
          add_regularization_gradients(replica, network_, loss_function_.regularizer);
        optimizer_.apply_gradients(replica);
        report_loss(replica, loss, penalty);
        measure<true>(replica, outputs, targets, weights);
      };
      class_weights_.weigh(replica.local_index(), targets, learn, sample_weight...);
      measure<false>(replica, outputs, targets);
    });
  }
  /// Measures the network in inference.
  void test(const InReplica auto& replica, const auto& batch) {
    on_parts(batch, [&](const auto& x, const auto& targets, const auto&... sample_weight) {
      const auto outputs = infer(replica, x);
      const auto loss = start_total_loss(replica.queue(), FitLoss::function(loss_function_), values_of(outputs),
                                         values_of(targets), sample_weight...);
      report_loss(replica, loss, start_penalty(replica));
      measure<true>(replica, outputs, targets, sample_weight...);
      measure<false>(replica, outputs, targets);
    });
  }
  /// The same two in steps that are compiled.
  void train(const InTrace auto& replica, const auto& batch) {
    on_parts(batch, [&](const auto& x, const auto& targets, const auto&... sample_weight) {
      const auto outputs = network_.forward(replica, x);
      const auto learn = [&](const auto& weights) {
        const auto loss = fit_loss(replica, outputs, targets, weights);
        network_.backward(replica, loss.learned);
        report_traced_loss(replica, loss);  // and the penalty of the weights before the update
        if constexpr (FitLoss::is_regularized)
          add_regularization_gradients(replica, network_, loss_function_.regularizer);
        optimizer_.apply_gradients(replica);
        measure<true>(replica, outputs, targets, weights);
      };
      class_weights_.weigh(replica, outputs, targets, learn, sample_weight...);
      measure<false>(replica, outputs, targets);
    });
  }
  void test(const InTrace auto& replica, const auto& batch) {
    on_parts(batch, [&](const auto& x, const auto& targets, const auto&... sample_weight) {
      const auto outputs = infer(replica, x);
      const auto measure_weighted = [&](const auto& weights) {
        report_traced_loss(replica, fit_loss(replica, outputs, targets, weights));
        measure<true>(replica, outputs, targets, weights);
      };
      if constexpr (sizeof...(sample_weight) == 0)
        measure_weighted(Unweighted{});
      else
        measure_weighted(sample_weight...);
      measure<false>(replica, outputs, targets);
    });
  }
  /// A network of the user's own that computes the same in both modes need not take one.
  template <class Replica, class X>
  auto infer(const Replica& replica, const X& x) {
    if constexpr (HasInference<Network, Replica, X>) {
      return network_.forward(replica, x, inference);
    } else {
      return network_.forward(replica, x);
    }
  }

  /// Nothing was measured so far.
  void reset() {
    const auto scope = strategy_.scope();
    loss_.reset(scope);
    each_metric([&](auto& metric) { metric.reset(scope); });
  }
  /// What was measured in all processes: a collective call of them.
  const Logs& read_logs() {
    return read([scope = strategy_.scope()](auto& metric) { return metric.result(scope); });
  }
  /// What was measured in this one, when somebody looks.
  [[nodiscard]] CurrentLogs current_logs() {
    return {this, [](void* steps) -> const Logs& {
              auto& mine = *static_cast<ModelSteps*>(steps);
              return mine.read([scope = mine.strategy_.scope()](auto& metric) { return metric.result_here(scope); });
            }};
  }

 private:
  /// The network's variables say whether they are of this strategy (spec Q02).
  static S& of_strategy(S& strategy, Network& network) {
    static_cast<void>(network.parameters().component(strategy.scope(), 0));
    return strategy;
  }

  void require_new_name(std::string_view name) {
    const std::size_t names = logs_.size();
    logs_.set(name, 0);
    if (logs_.size() == names)
      throw InvalidArgument(text("Two metrics of a model are named '", name, "'"),
                            "the logs would have one value for both",
                            "Give one of them another name: nn::SparseCategoricalAccuracy{.name = \"top\"}");
  }

  /// Calls `use(features, targets)`, or `use(features, targets, sample weights)`, of a batch that has both.
  template <class Batch>
  static void on_parts(const Batch& batch, const auto& use) {
    const auto parts = parts_of_batch<2>(batch);
    if constexpr (std::tuple_size_v<std::remove_const_t<decltype(parts)>> >= 2) std::apply(use, parts);
  }

  /// Gradients to which no regulariser adds are applied when they are ready, where the optimizer can.
  void backward(const InReplica auto& replica, const auto& loss) {
    if constexpr (!FitLoss::is_regularized && AppliesWhenReady<Optimizer<S, Network, O>>)
      network_.backward(replica, loss, optimizer_.when_ready(replica));
    else
      network_.backward(replica, loss);
  }

  /// What a regulariser adds to the loss: a Work.
  auto start_penalty(const InReplica auto& replica) {
    if constexpr (FitLoss::is_regularized)
      return start_total_regularization(replica, network_, loss_function_.regularizer);
    else
      return Ready{0.0};
  }

  /// The loss that the logs show is a mean over replicas and batches, each weighing as many as its rows: of the
  /// unscaled mean loss, or for a sum of its value times the replicas, so that the mean is the total of a global batch
  /// (spec P06). The penalty of a regulariser counts whole.
  void report_loss(const InReplica auto& replica, const auto& loss, const auto& penalty) {
    const auto weight = static_cast<double>(loss.examples());
    const double sum_factor = FitLoss::is_sum ? weight * static_cast<double>(replica.num_replicas_in_sync()) : 1;
    const auto tally = [=](double total, double added) {
      return MeanValue::Tally{.total = total * sum_factor + added * weight, .count = weight};
    };
    if constexpr (Work<std::remove_cvref_t<decltype(loss)>>)
      loss_.add(replica, DeferredTally{detail::AllOf{loss, penalty}, [=](const auto& computed) {
                                         return tally(computed.first.total(), computed.second.value());
                                       }});
    else
      loss_.add(replica, tally(loss.total(), penalty.value()));
  }

  /// The losses of a batch in a step that is compiled.
  template <class Weights>
  auto fit_loss(const InTrace auto& replica, const auto& outputs, const auto& targets, const Weights& weights) {
    return traced_fit_loss(FitInTrace{}, std::bool_constant<FitLoss::is_sum>{}, FitLoss::function(loss_function_),
                           replica, outputs, targets, weights);
  }
  void report_traced_loss(const InTrace auto& replica, const auto& loss) {
    if constexpr (FitLoss::is_regularized)
      loss_.update(replica, loss.shown + total_regularization(replica, network_, loss_function_.regularizer),
                   loss.rows);
    else
      loss_.update(replica, loss.shown, loss.rows);
  }

  /// Updates the metrics that are weighted, or those that are not.
  template <bool weighted, class Weights = Unweighted>
  void measure(const auto& replica, const auto& outputs, const auto& targets, const Weights& weights = {}) {
    each_metric([&]<class M>(M& metric) {
      if constexpr (M::is_weighted == weighted) metric.update(replica, outputs, targets, weights);
    });
  }

  const Logs& read(const auto& result_of) {
    logs_.set(loss_.name(), result_of(loss_));
    each_metric([&](auto& metric) { logs_.set(metric.name(), result_of(metric)); });
    return logs_;
  }
  template <class Call>
  void each_metric(Call call) {
    std::apply([&](auto&... metric) { (call(metric), ...); }, metrics_);
  }

  S& strategy_;
  Network& network_;
  L loss_function_;
  Optimizer<S, Network, O> optimizer_;
  Metric<S, MeanValue> loss_;
  std::tuple<ModelMetric<S, Ms>...> metrics_;
  Logs logs_;
  ClassWeights class_weights_;
};

}  // namespace detail

}  // namespace dist::nn
