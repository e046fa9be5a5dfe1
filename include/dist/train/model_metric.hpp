#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/metric.hpp>

namespace dist::nn {

/// A metric of a Model in which each example counts by its weight, the sample weight times that of its class in a fit, as
/// Keras' `weighted_metrics` do; in the other metrics of a Model all examples count alike:
///
///     nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{},
///                     nn::Weighted{nn::SparseCategoricalAccuracy{}}};
///
/// Logs have it under the metric's own name, behind the metrics that are not weighted; where one of these has that name,
/// "weighted_" stands before it, as in "weighted_accuracy".
template <class M>
struct Weighted {
  M metric = {};
};
template <class M>
Weighted(M) -> Weighted<M>;

/// The direction in which a metric improves, as its type says by `static constexpr bool more_is_better`.
enum class Better { less, more, unsaid };

namespace detail {

template <class M>
concept HasMoreIsBetter = requires {
  { M::more_is_better } -> std::convertible_to<bool>;
};

/// A loss, which nn::MeanOf makes a metric.
template <class M>
concept IsLoss = LossFunction<M, float, float> || LossFunction<M, float, std::int32_t>;

/// Measures nothing: takes the place of a refused metric.
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
class ModelMetric {
  using Given = MeasureOf<M>;
  using Measure = typename Given::Type;
  static_assert(!Given::is_loss,
                "a loss is a metric of a model inside nn::MeanOf: nn::MeanOf{nn::MeanAbsoluteError{}}");
  static_assert(Given::is_metric || Given::is_loss,
                "the metrics of a model are nn::MetricFunctions, each of which names its Tally and has a name, such as "
                "nn::SparseCategoricalAccuracy{}");

 public:
  static constexpr bool is_weighted = Given::is_weighted;

  /// Throws as Metric does.
  ModelMetric(S& strategy, M measure) : metric_(strategy, Given::of(std::move(measure))), name_(metric_.name()) {}

  static constexpr bool may_be_absent = true;  // in a checkpoint

  [[nodiscard]] static constexpr Better better() noexcept {
    if constexpr (HasMoreIsBetter<Measure>)
      return Measure::more_is_better ? Better::more : Better::less;
    else
      return Better::unsaid;
  }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  void rename(std::string name) { name_ = std::move(name); }

  /// Measures a batch of this replica. `weights` has one number per row, or is Unweighted.
  template <class Outputs, class Targets, class Weights>
  void update(const InReplica auto& replica, const Outputs& outputs, const Targets& targets, const Weights& weights) {
    if constexpr (!is_weighted || std::same_as<Weights, Unweighted>) {
      metric_.update(replica, outputs, targets);
    } else {
      constexpr bool takes_weights =
          TakesWeights<Measure, std::remove_cvref_t<decltype(replica.queue())>, Outputs, Targets, Weights>;
      static_assert(takes_weights,
                    "a metric that is nn::Weighted is called with outputs, targets and a tensor of one weight per row: "
                    "let it take them, or give it to the model without nn::Weighted");
      if constexpr (takes_weights) metric_.update(replica, outputs, targets, weights);
    }
  }
  /// The same in a step that is traced.
  template <class Outputs, class Targets, class Weights>
  void update(const InTrace auto& replica, const Outputs& outputs, const Targets& targets, const Weights& weights) {
    if constexpr (!is_weighted || std::same_as<Weights, Unweighted>)
      metric_.update(replica, outputs, targets);
    else
      metric_.update(replica, outputs, targets, weights);
  }
  [[nodiscard]] double result(const InCrossReplica auto& context) const { return metric_.result(context); }
  [[nodiscard]] double result_here(const InCrossReplica auto& context) const { return metric_.result_here(context); }
  void track(auto& visit) { metric_.track(visit); }
  void reset(const InCrossReplica auto& context) { metric_.reset(context); }

 private:
  Metric<S, Measure> metric_;
  std::string name_;
};

}  // namespace detail

}  // namespace dist::nn
