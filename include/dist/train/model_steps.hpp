#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/future.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/track.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/deferred_tally.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/loss_scale.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/strategy/compile.hpp>
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

namespace detail {

/// The loss and the metrics of a Model, which add up what replicas measure.
template <class S, class... Ms>
class Measures {
 public:
  /// Throws InvalidArgument for two metrics of one name.
  Measures(S& strategy, Ms... metrics)
      : strategy_(strategy),
        loss_(strategy, MeanValue{.name = "loss"}),
        metrics_(ModelMetric<S, Ms>{strategy, std::move(metrics)}...) {
    logs_.set(loss_.name(), 0);
    each_metric([&](auto& metric) {
      if (!metric.is_weighted) require_new_name(metric.name());
    });
    each_metric([&](auto& metric) {
      if (!metric.is_weighted) return;
      if (logs_.find(metric.name()) != nullptr) metric.rename(concat("weighted_", metric.name()));
      require_new_name(metric.name());
    });
  }

  [[nodiscard]] Metric<S, MeanValue>& loss() noexcept { return loss_; }

  /// Updates the weighted metrics, or the other ones.
  template <bool weighted, class Weights = Unweighted>
  void measure(const auto& replica, const auto& outputs, const auto& targets, const Weights& weights = {}) {
    each_metric([&]<class M>(M& metric) {
      if constexpr (M::is_weighted == weighted) metric.update(replica, outputs, targets, weights);
    });
  }

  /// The direction in which the metric of that name improves; nothing for other names.
  [[nodiscard]] std::optional<Better> better(std::string_view name) const {
    if (name == loss_.name()) return Better::less;
    std::optional<Better> better;
    std::apply([&](const auto&... metric) { ((name == metric.name() ? better = metric.better() : better), ...); },
               metrics_);
    return better;
  }

  [[nodiscard]] std::string names() const { return logs_.names(); }

  /// A fit or an evaluation that measures, until it is destroyed.
  class Turn {
   public:
    explicit Turn(bool& is_taken) : is_taken_(is_taken) { is_taken_ = true; }
    ~Turn() { is_taken_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    bool& is_taken_;
  };
  /// Throws InvalidArgument where another one measures, whose callback makes the call.
  [[nodiscard]] Turn taken_by(std::string_view who) {
    if (is_taken_)
      throw InvalidArgument(concat(who, " was called in a callback of a fit or an evaluation of the same model"),
                            "the metrics would count the examples of both",
                            "Call it afterwards. A callback of a fit may call evaluate and predict");
    return Turn{is_taken_};
  }

  /// Discards all measurements.
  void reset() {
    const auto scope = strategy_.scope();
    loss_.reset(scope);
    each_metric([&](auto& metric) { metric.reset(scope); });
  }
  /// The logs of all processes: a collective call of them.
  const Logs& read() {
    return read([scope = strategy_.scope()](auto& metric) { return metric.result(scope); });
  }
  /// The logs of the measurements until now, which are computed when a callback reads them.
  [[nodiscard]] CurrentLogs current() {
    return {this,
            [](void* measures) -> const Logs& {
              auto& mine = *static_cast<Measures*>(measures);
              return mine.read([scope = mine.strategy_.scope()](auto& metric) { return metric.result_here(scope); });
            },
            [](void* measures) -> const Logs& { return static_cast<Measures*>(measures)->read(); }};
  }

  /// See Trackable.
  void track(auto& visit) {
    visit(loss_.name(), loss_);
    each_metric([&](auto& metric) { visit(metric.name(), metric); });
  }

 private:
  void require_new_name(std::string_view name) {
    const std::size_t names = logs_.size();
    logs_.set(name, 0);
    if (logs_.size() == names)
      throw InvalidArgument(concat("Two metrics of a model are named '", name, "'"),
                            "the logs would have one value for both",
                            "Give one of them another name: nn::SparseCategoricalAccuracy{.name = \"top\"}");
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
  Metric<S, MeanValue> loss_;
  std::tuple<ModelMetric<S, Ms>...> metrics_;
  Logs logs_;
  bool is_taken_ = false;
};

/// A network whose products round gradients to Float16, where small ones vanish.
template <class Network>
concept RoundsToFloat16 =
    RoundsFactors<typename Network::Backend> && std::same_as<typename Network::Backend::Factor, Float16>;

/// For networks that need no LossScale.
struct NoLossScale {
  explicit NoLossScale(const auto&) {}
};

/// The work of a replica on its part of a batch, in training, test and prediction, with the measurements: all of a Model except
/// its loops. The loss of a network that RoundsToFloat16 has a LossScale. Refers to the strategy and the
/// network.
template <class S, class Network, class O, class L, class... Ms>
class ModelSteps {
  using FitLoss = detail::FitLoss<L>;
  static constexpr bool scales_loss = RoundsToFloat16<Network>;

 public:
  ModelSteps(S& strategy, Network& network, O optimizer, L loss, Ms... metrics)
      : strategy_(strategy),
        network_(network),
        loss_function_(std::move(loss)),
        optimizer_(of_strategy(strategy, network), network, std::move(optimizer)),
        trained_(strategy, metrics...),
        tested_(strategy, std::move(metrics)...),
        loss_scale_(strategy),
        class_weights_(strategy.num_local_replicas()) {}

  [[nodiscard]] Network& network() const noexcept { return network_; }
  [[nodiscard]] Optimizer<S, Network, O>& optimizer() noexcept { return optimizer_; }
  [[nodiscard]] const Optimizer<S, Network, O>& optimizer() const noexcept { return optimizer_; }
  [[nodiscard]] const L& loss_function() const noexcept { return loss_function_; }
  [[nodiscard]] ClassWeights& class_weights() noexcept { return class_weights_; }

  /// The measurements of training, and of tests, which a callback may start during a training.
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

  /// One update of the network with the rows of this replica; in a step that is compiled, in the program.
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
        class_weights_.weigh(replica, outputs, targets, learn, sample_weight...);
      else
        class_weights_.weigh(replica.local_index(), targets, learn, sample_weight...);
      trained_.template measure<false>(replica, outputs, targets);
    });
  }
  /// Measures the network in inference.
  void test(const auto& replica, const auto& batch) {
    on_parts(batch, [&](const auto& x, const auto& targets, const auto&... sample_weight) {
      const auto outputs = infer(replica, x);
      report_loss(tested_, replica, test_loss(replica, outputs, targets, sample_weight...), start_penalty(replica));
      tested_.template measure<true>(replica, outputs, targets, sample_weight...);
      tested_.template measure<false>(replica, outputs, targets);
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

  /// What all replicas do with their parts of a batch, as functions of that; compiled where the strategy's devices compile
  /// steps. They refer to this.
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
  /// The network's variables say whether they are of this strategy (spec Q02).
  static S& of_strategy(S& strategy, Network& network) {
    static_cast<void>(network.parameters().component(strategy.scope(), 0));
    return strategy;
  }

  /// Calls `use(features, targets)`, or `use(features, targets, sample weights)`, of a batch that has both.
  template <class Batch>
  static void on_parts(const Batch& batch, const auto& use) {
    const auto parts = parts_of_batch<2>(batch);
    if constexpr (std::tuple_size_v<std::remove_const_t<decltype(parts)>> >= 2) std::apply(use, parts);
  }

  /// The number of rows that all replicas have in this step, of which this one has `mine`. A collective call.
  static std::size_t rows_of_step(const InReplica auto& replica, std::size_t mine) {
    return static_cast<std::size_t>(replica.all_reduce(sum, std::uint64_t{mine}));
  }

  /// The loss of a batch in training, from which gradients follow, and in a test. The sum over the replicas
  /// is the mean over all rows of the step, however they are divided.
  auto fit_loss(const InReplica auto& replica, const auto& outputs, const auto& targets, const auto& weights) {
    const std::size_t divisor = FitLoss::is_sum ? 1 : rows_of_step(replica, values_of(outputs).rows());
    return divided_loss(replica.queue(), FitLoss::function(loss_function_), outputs, targets, divisor, weights);
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

  /// Gradients that are not changed before are applied when they are ready, where the optimizer can.
  void backward(const InReplica auto& replica, const auto& loss) {
    if constexpr (!FitLoss::is_regularized && !scales_loss && Optimizer<S, Network, O>::applies_when_ready)
      network_.backward(replica, loss, optimizer_.when_ready(replica));
    else
      network_.backward(replica, loss);
  }

  void backward(const InTrace auto& replica, const auto& loss) { network_.backward(replica, loss.learned(replica)); }

  /// What a regulariser adds to the loss: a Future, or a number of the program.
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

  /// The loss that the logs show is a mean over replicas and batches, weighted by their rows: of the
  /// mean loss, or of the sum over all rows of the step (spec P06). The penalty of a regulariser counts whole.
  void report_loss(Measures<S, Ms...>& measures, const InReplica auto& replica, const auto& loss, const auto& penalty) {
    const auto weight = static_cast<double>(loss.examples());
    const double sum_factor = FitLoss::is_sum ? static_cast<double>(rows_of_step(replica, loss.examples())) : 1;
    const auto tally = [=](double total, double added) {
      return MeanValue::Tally{.total = total * sum_factor + added * weight, .count = weight};
    };
    if constexpr (Future<std::remove_cvref_t<decltype(loss)>>)
      measures.loss().add(replica, DeferredTally{detail::AllOf{loss, penalty}, [=](const auto& computed) {
                                                   return tally(computed.first.total(), computed.second.value());
                                                 }});
    else
      measures.loss().add(replica, tally(loss.total(), penalty.value()));
  }

  void report_loss(Measures<S, Ms...>& measures, const InTrace auto& replica, const auto& loss, const auto& penalty) {
    measures.loss().update(replica, loss.shown(replica) + penalty, loss.rows);
  }

  S& strategy_;
  Network& network_;
  L loss_function_;
  Optimizer<S, Network, O> optimizer_;
  Measures<S, Ms...> trained_;
  Measures<S, Ms...> tested_;
  [[no_unique_address]] std::conditional_t<scales_loss, LossScale<S>, NoLossScale> loss_scale_;
  ClassWeights class_weights_;
};

}  // namespace detail

}  // namespace dist::nn
