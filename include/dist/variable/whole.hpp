/// The two verbs of what outlives a run: all that a variable is, as one tensor, and a variable made of one again.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/read.hpp>
#include <dist/variable/store/owner.hpp>
#include <dist/variable/write.hpp>

namespace dist::detail {

/// What rounding took the mean of the copies out of, it goes back to: the mean of equal copies is their value.
template <class Variable, InCrossReplica Context, class T>
void clamp_to_copies(const Variable& variable, const Context& context, std::span<T> means) {
  const HostCopies copies{variable, context};
  const auto bound = [&](auto op) {
    Tensor<T> bounds{variable.shape()};
    for (std::size_t copy = 0; copy < variable.copies(); ++copy) {
      const std::span<const T> elements = copies[copy];
      for (std::size_t i = 0; i < elements.size(); ++i)
        bounds[i] = copy == 0 ? elements[i] : op(bounds[i], elements[i]);
    }
    run_collectively(context.strategy(), [&] { context.strategy().workers().all_reduce(op, bounds.elements()); });
    return bounds;
  };
  const Tensor<T> least = bound(min);
  const Tensor<T> most = bound(max);
  for (std::size_t i = 0; i < means.size(); ++i) means[i] = std::clamp(means[i], least[i], most[i]);
}

/// See DistributedVariable::whole.
template <class Variable, InCrossReplica Context>
[[nodiscard]] auto whole(const Variable& variable, const Context& context) {
  using T = typename Variable::Element;
  using Agg = typename Variable::Aggregation;
  if constexpr (RemoteStore<StoreOf<Context>>) {
    return Tensor<T>{TensorView<const T>{variable.copy(context, 0).data(), variable.shape()}};
  } else if constexpr (is_on_shard<typename Variable::Synchronization>) {
    return OwnerStore::whole(variable, context);
  } else {
    Tensor<T> all{variable.shape()};
    copy_and_wait(variable.queue(context, 0), variable.component(context, 0), all.elements());
    if constexpr (std::same_as<Agg, None>) {
      run_collectively(context.strategy(), [&] { context.strategy().workers().broadcast(0, all.elements()); });
    } else if constexpr (copies_may_differ<Variable, Context>) {
      aggregate_copies(variable, context, all.elements());
      if constexpr (std::same_as<Agg, Mean>) clamp_to_copies(variable, context, all.elements());
    }
    return all;
  }
}

/// See DistributedVariable::restore.
template <class Variable, InCrossReplica Context, class Values>
void restore(Variable& variable, const Context& context, const Values& given) {
  if constexpr (RemoteStore<StoreOf<Context>>) {
    update_every_copy(variable, context, IndexRange{0, variable.size()}, given, Assign{});
  } else if constexpr (is_on_shard<typename Variable::Synchronization>) {
    OwnerStore::restore(variable, context, given);
  } else if constexpr (copies_may_differ<Variable, Context> && std::same_as<typename Variable::Aggregation, Sum>) {
    // A sum that is shared out would not always add up to itself.
    using T = typename Variable::Element;
    for (std::size_t copy = 0; copy < variable.copies(); ++copy) {
      const auto queue = variable.queue(context, copy);
      if (copy == 0 && context.strategy().is_chief())
        update_elements(queue, variable.copy(context, copy), given, Assign{});
      else
        queue.fill(variable.copy(context, copy), T{});
      queue.wait();
    }
  } else {
    update_every_copy(variable, context, IndexRange{0, variable.size()}, given, Assign{});
  }
}

}  // namespace dist::detail
