#pragma once

#include <cstddef>

#include <dist/context/cross_replica_context.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn {

/// Replaces the weights of all copies by the average that slot `average` keeps (nn::AverageWeights): a whole one on each
/// replica, or a share of one.
template <class Weights, class Slot>
void take_average(const InCrossReplica auto& context, Weights& weights, const Slot& average, bool each_has_all) {
  using T = typename Weights::Element;
  if (each_has_all) {
    for (std::size_t local = 0; local < context.strategy().num_local_replicas(); ++local)
      weights.queue(context, local).copy(average.component(context, local), weights.component(context, local));
  } else {
    const auto whole = average.read(context);
    weights.assign(context, TensorView<const T>{whole});
  }
}

}  // namespace dist::nn
