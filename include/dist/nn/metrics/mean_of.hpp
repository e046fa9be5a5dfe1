#pragma once

#include <string_view>

#include <dist/device/cpu.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/row_metric.hpp>

namespace dist::nn {

/// The mean of an unscaled loss over all examples of any batch and replica (spec P06), optionally with sample weights:
/// `nn::Metric mse{strategy, nn::MeanOf{nn::MeanSquaredError{}}};`
template <class L>
struct MeanOf {
  using Tally = nn::Tally<double, double>;
  static constexpr bool more_is_better = false;

  L loss = {};  ///< unscaled
  std::string_view name = L::name;

  /// Returns the sum of the examples' losses, and of their weights, in the host's memory.
  template <Values Outputs, Values Targets, class Weights = Unweighted>
    requires are_on_host<Outputs, Targets>
  [[nodiscard]] Tally operator()(const Outputs& outputs, const Targets& targets,
                                 const Weights& sample_weight = {}) const {
    const auto values = values_of(outputs);
    const auto weight = detail::row_weights(name, sample_weight, values);
    return {total_loss(loss, values, values_of(targets), sample_weight),
            detail::start_sum_of_weights(Cpu::Queue{}, values.rows(), weight).value()};
  }
  /// Returns the deferred tally of a batch in device memory.
  template <class Q, Values Outputs, Values Targets>
    requires(!are_on_host<Outputs, Targets>)
  [[nodiscard]] auto operator()(const Q& queue, const Outputs& outputs, const Targets& targets) const {
    return DeferredTally{start_total_loss(queue, loss, values_of(outputs), values_of(targets)),
                         [](const auto& computed) { return tally(computed); }};
  }
  /// Starts the weighted sum of the losses by `queue`, for examples in device memory.
  template <class Q, Values Outputs, Values Targets, Values Weights>
    requires(!are_on_host<Outputs, Targets>)
  [[nodiscard]] auto operator()(const Q& queue, const Outputs& outputs, const Targets& targets,
                                const Weights& sample_weight) const {
    const auto values = values_of(outputs);
    const auto weight = detail::row_weights(name, sample_weight, values);
    return DeferredTally{detail::AllOf{start_total_loss(queue, loss, values, values_of(targets), sample_weight),
                                       detail::start_sum_of_weights(queue, values.rows(), weight)},
                         [](const auto& computed) {
                           return Tally{computed.first.total(), computed.second.value()};
                         }};
  }
  /// Returns the tally of a Loss, or a DeferredLoss after waiting.
  [[nodiscard]] static Tally tally(const auto& computed) {
    return {computed.total(), static_cast<double>(computed.examples())};
  }
};

/// Deduces the loss.
template <class L>
MeanOf(L) -> MeanOf<L>;
/// Deduces the loss.
template <class L>
MeanOf(L, std::string_view) -> MeanOf<L>;

/// The weighted mean of numbers: `metric.update(replica, value)` or `metric.update(replica, value, weight)`.
struct MeanValue {
  using Tally = nn::Tally<double, double>;

  std::string_view name = "mean";

  /// Returns the tally of one number.
  [[nodiscard]] Tally operator()(double value, double weight = 1) const { return {value * weight, weight}; }
};

}  // namespace dist::nn
