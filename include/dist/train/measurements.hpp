#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn {

/// A metric of a Model with weighted examples, like Keras' `weighted_metrics`: by the sample weight times the class
/// weight of a fit. In other metrics all examples have the same weight:
///
///     nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{},
///                     nn::Weighted{nn::SparseCategoricalAccuracy{}}};
///
/// In the logs it has the metric's name, after the unweighted metrics, with the prefix "weighted_" if one of these has
/// the same name.
template <class M>
struct Weighted {
  /// The metric to which the model passes the weights.
  M metric = {};
};
/// Deduces the metric.
template <class M>
Weighted(M) -> Weighted<M>;

/// The direction in which a metric improves, declared by its type as `static constexpr bool more_is_better`.
enum class Better { less, more, unsaid };

}  // namespace dist::nn

namespace dist::nn::detail {

/// A type-erased metric of a model, and its name in the logs.
class AnyModelMetric {
 public:
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  void rename(std::string_view name) { name_ = name; }
  [[nodiscard]] bool weighs() const noexcept { return weighs_; }
  [[nodiscard]] Better better() const noexcept { return better_; }

  /// Returns the result of all processes. A collective call of the processes.
  [[nodiscard]] virtual double result() const = 0;
  /// Returns the result of the replicas of this process.
  [[nodiscard]] virtual double result_here() const = 0;
  virtual void reset() = 0;

 protected:
  AnyModelMetric(bool weighs, Better better) : weighs_(weighs), better_(better) {}
  ~AnyModelMetric() = default;

 private:
  std::string name_;
  bool weighs_;
  Better better_;
};

/// The loss and the metrics of a Model, type-erased.
class Measurements {
 public:
  Measurements() = default;
  Measurements(const Measurements&) = delete;
  Measurements& operator=(const Measurements&) = delete;

  void reset();
  /// Returns the logs of all processes. A collective call of the processes.
  const Logs& read();
  /// Returns the logs of the replicas of this process.
  const Logs& read_here();

  /// Returns the direction in which the metric with this name improves; nothing for other names.
  [[nodiscard]] std::optional<Better> better(std::string_view name) const;
  /// Returns the current logs, computed on demand.
  [[nodiscard]] CurrentLogs current();
  /// Returns the names: "loss, accuracy".
  [[nodiscard]] std::string names() const { return logs_.names(); }

  /// Marks the measurements as in use by a fit or an evaluation while it exists.
  class Turn {
   public:
    explicit Turn(bool& is_taken) : is_taken_(is_taken) { is_taken_ = true; }
    ~Turn() { is_taken_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    bool& is_taken_;
  };
  /// Throws InvalidArgument if they are in use: then a callback of that fit or evaluation makes the call.
  [[nodiscard]] Turn taken_by(std::string_view who);

 protected:
  ~Measurements() = default;
  /// Takes the loss and then the metrics, which must outlive this object, and renames a weighted metric whose name is
  /// taken. Throws InvalidArgument if two metrics have the same name.
  void take(std::vector<AnyModelMetric*> metrics);

 private:
  std::vector<AnyModelMetric*> metrics_;
  Logs logs_;
  bool is_taken_ = false;
};

template <class M>
concept HasMoreIsBetter = requires {
  { M::more_is_better } -> std::convertible_to<bool>;
};

/// A loss, which needs nn::MeanOf to be a metric.
template <class M>
concept IsLoss = LossFunction<M, float, float> || LossFunction<M, float, std::int32_t>;

/// Measures nothing: replaces an invalid metric.
struct NoMeasure {
  using Tally = nn::Tally<double, double>;
  std::string_view name;
  [[nodiscard]] Tally operator()(const auto&...) const { return {}; }
};

/// The measure of a model's metric.
template <class M>
struct MeasureOf {
  static constexpr bool is_metric = MetricFunction<M>;
  static constexpr bool is_loss = !is_metric && IsLoss<M>;
  using Type = std::conditional_t<is_metric, M, NoMeasure>;
  static constexpr bool is_weighted = false;
  static Type of([[maybe_unused]] M measure) {
    if constexpr (is_metric)
      return measure;
    else
      return {};
  }
};
template <class M>
struct MeasureOf<Weighted<M>> : MeasureOf<M> {
  static constexpr bool is_weighted = true;
  static auto of(Weighted<M> weighted) { return MeasureOf<M>::of(std::move(weighted.metric)); }
};

template <class M, class Queue, class... Given>
concept TakesWeights = MeasuresRows<M> || CountingMetric<M> || MeasuresByQueue<M, Queue, Given...> ||
    std::invocable<const M&, const Given&...>;

/// A metric, and its name in the logs of a model.
template <class S, class M>
class ModelMetric final : public AnyModelMetric {
  using Given = MeasureOf<M>;
  using Measure = typename Given::Type;
  static_assert(!Given::is_loss,
                "a loss is a metric of a model inside nn::MeanOf: nn::MeanOf{nn::MeanAbsoluteError{}}");
  static_assert(Given::is_metric || Given::is_loss,
                "the metrics of a model are nn::MetricFunctions, each with a type Tally and a name, such as "
                "nn::SparseCategoricalAccuracy{}");

 public:
  static constexpr bool is_weighted = Given::is_weighted;

  /// Throws like Metric.
  explicit ModelMetric(std::pair<S&, const M&> of)
      : AnyModelMetric(Given::is_weighted, better_of_measure),
        strategy_(of.first),
        metric_(of.first, Given::of(of.second)) {
    rename(metric_.name());
  }

  static constexpr bool may_be_absent = true;  // in a checkpoint

  [[nodiscard]] Metric<S, Measure>& metric() noexcept { return metric_; }

  /// Measures a batch of this replica. `weights` has one number per row, or is Unweighted.
  template <class Outputs, class Targets, class Weights>
  void update(const InReplica auto& replica, const Outputs& outputs, const Targets& targets, const Weights& weights) {
    if constexpr (!is_weighted || std::same_as<Weights, Unweighted>) {
      metric_.update(replica, outputs, targets);
    } else {
      constexpr bool takes_weights =
          TakesWeights<Measure, std::remove_cvref_t<decltype(replica.queue())>, Outputs, Targets, Weights>;
      static_assert(takes_weights,
                    "a metric in nn::Weighted receives outputs, targets and a tensor of one weight per row: let it "
                    "take these, or give it to the model without nn::Weighted");
      if constexpr (takes_weights) metric_.update(replica, outputs, targets, weights);
    }
  }
  /// Measures a batch in a traced step.
  template <class Outputs, class Targets, class Weights>
  void update(const InTrace auto& replica, const Outputs& outputs, const Targets& targets, const Weights& weights) {
    if constexpr (!is_weighted || std::same_as<Weights, Unweighted>)
      metric_.update(replica, outputs, targets);
    else
      metric_.update(replica, outputs, targets, weights);
  }
  [[nodiscard]] double result() const override { return metric_.result(strategy_.scope()); }
  [[nodiscard]] double result_here() const override { return metric_.result_here(strategy_.scope()); }
  void reset() override { metric_.reset(strategy_.scope()); }
  void track(auto& visit) { metric_.track(visit); }

 private:
  static constexpr Better better_of_measure = [] {
    if constexpr (HasMoreIsBetter<Measure>) return Measure::more_is_better ? Better::more : Better::less;
    return Better::unsaid;
  }();

  S& strategy_;
  Metric<S, Measure> metric_;
};

/// The loss and the metrics of a Model, accumulated over replicas.
template <class S, class... Ms>
class Measures final : public Measurements {
 public:
  /// Throws InvalidArgument if two metrics have the same name.
  explicit Measures(S& strategy, const Ms&... metrics)
      : loss_(std::pair<S&, const MeanValue&>{strategy, MeanValue{.name = "loss"}}),
        metrics_(std::pair<S&, const Ms&>{strategy, metrics}...) {
    std::apply([&](auto&... metric) { take({&loss_, &metric...}); }, metrics_);
  }

  [[nodiscard]] Metric<S, MeanValue>& loss() noexcept { return loss_.metric(); }

  /// Updates the weighted metrics, or the unweighted ones.
  template <bool weighted, class Weights = Unweighted>
  void measure(const auto& replica, const auto& outputs, const auto& targets, const Weights& weights = {}) {
    each_metric([&]<class M>(M& metric) {
      if constexpr (M::is_weighted == weighted) metric.update(replica, outputs, targets, weights);
    });
  }

  /// See Trackable.
  void track(auto& visit) {
    visit(loss_.name(), loss_.metric());
    each_metric([&](auto& metric) { visit(metric.name(), metric); });
  }

 private:
  void each_metric(const auto& call) {
    std::apply([&](auto&... metric) { (call(metric), ...); }, metrics_);
  }

  ModelMetric<S, MeanValue> loss_;
  std::tuple<ModelMetric<S, Ms>...> metrics_;
};

}  // namespace dist::nn::detail

#ifndef DIST_COMPILED
#include <dist/train/measurements.ipp>
#endif
