#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/hlo/collectives.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/nn/hlo/traced_update.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace dist::nn {

/// The traced counterpart of nn::Optimizer::apply_gradients: sums gradients over the replicas if `aggregate`, then
/// updates parameters and slots, of which each replica has all. `iteration()` returns the step's number, from 1,
/// before each run of the program.
template <bool aggregate, class Optimizer, class Network, class Gradients, class Iteration>
void traced_apply(OptimizerInTrace, const InTrace auto& trace, Optimizer& optimizer, Network& network,
                  Gradients gradients, Iteration iteration) {
  constexpr bool is_float = std::is_same_v<typename Optimizer::Element, float>;
  static_assert(
      is_float,
      "in a compiled step, optimizers update only parameters of type float: give nn::Network this element type");
  if constexpr (is_float) {
    const auto& layout = network.layout();
    const auto weights = network.traced_parameters(trace);
    std::vector<TracedParameter> parameters;
    for (std::size_t which = 0; which < weights.size(); ++which) {
      if constexpr (aggregate)
        gradients[which] = hlo::Dynamic<float>{hlo::untyped::all_reduce("add", gradients[which].value())};
      parameters.push_back({.weights = weights[which],
                            .gradient = gradients[which],
                            .decays = detail::decays(optimizer.function(), layout[which].name())});
    }
    for (const auto& slot : optimizer.slots()) {
      const std::vector<hlo::Value> parts = trace.read_parts(slot, layout);
      for (std::size_t which = 0; which < parts.size(); ++which) parameters[which].slots.emplace_back(parts[which]);
    }

    const auto numbers = trace.host_numbers(
        StepNumbers::shape(), [&optimizer, iteration] { return step_numbers(optimizer.function(), iteration()); });
    traced_update(optimizer.function(), numbers.template as<most_step_numbers>(), parameters);

    const auto write = [&](const auto& variable, const auto& value_of) {
      std::vector<hlo::Value> values;
      for (const TracedParameter& parameter : parameters) values.push_back(value_of(parameter).value());
      trace.write_parts(variable, layout, values);
    };
    write(network.parameters(), [](const TracedParameter& parameter) { return parameter.weights; });
    for (std::size_t k = 0; k < optimizer.slots().size(); ++k)
      write(optimizer.slots()[k], [k](const TracedParameter& parameter) { return parameter.slots[k]; });
  }
}

}  // namespace dist::nn
