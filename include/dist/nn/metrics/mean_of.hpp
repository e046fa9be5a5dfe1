#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/row_metric.hpp>

namespace dist::nn {

namespace detail {

/// An example's weight; 0 if the loss leaves it out.
template <class L, class Target, class Weight>
struct CountedWeight {
  L loss;
  const Target* targets;
  std::size_t targets_size;
  Weight weight;
  DIST_HD double operator()(std::size_t example) const {
    const bool counts = is_counted(loss, Row<const Target>{targets + example * targets_size, targets_size});
    return counts ? static_cast<double>(weight(example)) : 0;
  }
};

}  // namespace detail

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
    const double total = total_loss(loss, values_of(outputs), values_of(targets), sample_weight);
    return {total, start_sum_of_weights(Cpu::Queue{}, outputs, targets, sample_weight).value()};
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
    return DeferredTally{
        detail::AllOf{start_total_loss(queue, loss, values_of(outputs), values_of(targets), sample_weight),
                      start_sum_of_weights(queue, outputs, targets, sample_weight)},
        [](const auto& computed) {
          return Tally{computed.first.total(), computed.second.value()};
        }};
  }
  /// Returns the tally of a Loss, or a DeferredLoss after waiting.
  [[nodiscard]] static Tally tally(const auto& computed) {
    return {computed.total(), static_cast<double>(computed.examples())};
  }

 private:
  /// Starts the sum of the weights of the examples that count, by `queue`. Returns a Future.
  [[nodiscard]] auto start_sum_of_weights(const auto& queue, const auto& outputs, const auto& targets,
                                          const auto& sample_weight) const {
    const auto values = values_of(outputs);
    const auto given = values_of(targets);
    const auto weight = detail::example_weights<L>(name, sample_weight, values);
    const std::size_t examples = detail::rows_of_examples<L>(values).rows();
    using Target = std::remove_const_t<typename decltype(given)::Element>;
    return queue.start_transform_reduce(sum, {0, examples},
                                        detail::CountedWeight<L, Target, std::remove_const_t<decltype(weight)>>{
                                            loss, given.data(), examples == 0 ? 0 : given.size() / examples, weight});
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
