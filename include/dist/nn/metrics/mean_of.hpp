#pragma once

#include <cstdint>
#include <string_view>

#include <dist/nn/deferred_tally.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/metric.hpp>

namespace dist::nn {

/// The mean of a loss over all examples, unscaled: every example weighs the same, whatever its batch or
/// replica (spec P06). `nn::Metric mse{strategy, nn::MeanOf{nn::MeanSquaredError{}}};`
template <class L>
struct MeanOf {
  using Tally = nn::Tally<double, std::int64_t>;

  L loss = {};
  std::string_view name = L::name;

  template <Values Outputs, Values Targets>
    requires are_on_host<Outputs, Targets>
  [[nodiscard]] Tally operator()(const Outputs& outputs, const Targets& targets) const {
    const auto values = values_of(outputs);
    return {total_loss(loss, values, values_of(targets)), static_cast<std::int64_t>(values.rows())};
  }
  /// The same in memory of a device.
  template <class Q, Values Outputs, Values Targets>
    requires(!are_on_host<Outputs, Targets>)
  [[nodiscard]] auto operator()(const Q& queue, const Outputs& outputs, const Targets& targets) const {
    return DeferredTally{start_total_loss(queue, loss, values_of(outputs), values_of(targets)),
                         [](const auto& computed) { return tally(computed); }};
  }
  /// Of a Loss or a DeferredLoss, which is waited for.
  [[nodiscard]] static Tally tally(const auto& computed) {
    return {computed.total(), static_cast<std::int64_t>(computed.examples())};
  }
};

template <class L>
MeanOf(L) -> MeanOf<L>;
template <class L>
MeanOf(L, std::string_view) -> MeanOf<L>;

}  // namespace dist::nn
