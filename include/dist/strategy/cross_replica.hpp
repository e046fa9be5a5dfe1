/// Functions on the values of all replicas, in the cross-replica context: collective calls of the processes.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/comm/communication_options.hpp>
#include <dist/context/agreed_structure.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/strategy/combine_values.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist {

namespace detail {

/// Returns `combine(workers)` for a value, equal on all workers. `operation` begins messages.
template <class S, class Value, class Combine>
auto combine_together(const S& strategy, [[maybe_unused]] std::string_view operation, const Value& value,
                      const CommunicationOptions& options, Combine&& combine) {
  return run_collectively(strategy, options, [&](const auto& workers) {
    require_value_per_replica(strategy.num_local_replicas(), value, operation);
    const AgreedStructure agreed{workers, "worker", value};
    return combine(workers);
  });
}

}  // namespace detail

/// Reduces the values of all replicas (spec C07): numbers, and stand-ins such as nn::Loss, to a number; tensors element
/// by element to a new tensor; contiguous ranges of numbers to one of their type; indexed slices to the concatenation
/// of all; tuples, pairs, arrays, optionals and plain structs member by member. A plain value, as from `run` with one
/// replica, is unchanged (spec C11); under MultiWorker, the processes' plain values are reduced (spec C13).
/// `options.timeout` limits the wait for other processes (spec H13).
///
/// Throws ShapeMismatch if shapes differ, and InvalidArgument for the sum of a plain value with several replicas, which
/// is ambiguous.
template <class S, class Op, class Value, std::same_as<CommunicationOptions> Options = CommunicationOptions>
[[nodiscard(DIST_REDUCE_RETURNS)]] auto reduce(const CrossReplicaContext<S>& scope, Op op, const Value& value,
                                               const Options& options = {}) {
  return detail::combine_together(scope.strategy(), "reduce was given", value, options, [&](const auto& workers) {
    if constexpr (detail::require_memberwise_op<Op, Value>())
      return detail::reduce_values(op, value, scope.num_replicas_in_sync(), workers);
    else
      return Value(value);
  });
}
/// Reduces the copies of a variable: OnRead, regardless of its aggregation; OnWrite, whose copies are equal, with a
/// mean or maximum (spec C12, E04).
template <class S, class Op, class T, class Sync, class Agg, class Device>
[[nodiscard(DIST_REDUCE_RETURNS)]] Tensor<T> reduce(const CrossReplicaContext<S>& scope, Op op,
                                                    const DistributedVariable<T, Sync, Agg, Device>& variable) {
  static_assert(!detail::is_on_shard<Sync>,
                "an OnShard variable has only one value for each element: read the variable instead");
  static_assert(
      std::same_as<Sync, OnRead> || detail::is_idempotent<Op>,
      "reduce of a variable whose copies are equal takes mean, min or max, which give its value; a sum would count "
      "the value once for each copy");
  const detail::HostCopies copies{variable, scope};
  const std::size_t values = S::Store::shared ? 1 : variable.copies();  // shared copies have one value
  return detail::run_collectively(scope.strategy(), [&] {
    const auto view_of = [&](std::size_t copy) { return TensorView<const T>{copies[copy], variable.shape()}; };
    return detail::reduce_values(op, PerReplica<TensorView<const T>>(values, view_of), 1, scope.strategy().workers());
  });
}
/// Reduces values over all replicas and along axes (spec C09): with `{0, 1}`, all rows and columns of all replicas, to
/// a tensor without these axes. Extents may differ along them; a mean weights all elements equally (spec C10). A plain
/// tensor is reduced along its axes.
///
/// Throws InvalidArgument if an axis is out of range, and ShapeMismatch for other differences.
template <class S, class Op, class Value>
[[nodiscard(DIST_REDUCE_RETURNS)]] auto reduce(const CrossReplicaContext<S>& scope, Op op, const Value& value,
                                               Axes axes, const CommunicationOptions& options = {}) {
  return detail::combine_together(scope.strategy(), "reduce was given", value, options, [&](const auto& workers) {
    if constexpr (detail::require_memberwise_op<Op, Value>())
      return detail::reduce_values_along(op, value, axes, scope.num_replicas_in_sync(), workers);
    else
      return Value(value);
  });
}

/// Returns the values of all replicas, concatenated along `axis` in replica order (spec C14). Throws ShapeMismatch for
/// scalars and differences along other axes, and InvalidArgument if `axis` is out of range.
template <class S, class Value>
[[nodiscard(DIST_GATHER_RETURNS)]] auto gather(const CrossReplicaContext<S>& scope, const Value& value, int axis,
                                               const CommunicationOptions& options = {}) {
  return detail::combine_together(scope.strategy(), "gather was given", value, options,
                                  [&](const auto& workers) { return detail::gather_values(value, axis, workers); });
}

/// Calls `fn(context, args...)` for each copy of `variable`, with an UpdateContext for which variable operations change
/// this copy, and the copy's value of PerReplica arguments (spec D04). Under CentralStorage there is one copy, with the
/// arguments of replica 0. Returns the results as a PerReplica, or nothing.
///
/// Throws WrongStrategy for a variable of another strategy.
template <class S, class Variable, class Fn, class... Args>
auto update(const CrossReplicaContext<S>& scope, const Variable& variable, Fn&& fn, Args&&... args) {
  (require_value_per_replica(scope.strategy().num_local_replicas(), args), ...);
  static_cast<void>(variable.component(scope, 0));
  const auto update_one = [&](std::size_t copy) -> decltype(auto) {
    std::size_t reader = 0;
    while (S::Store::copy_of(reader) != copy) ++reader;
    UpdateContext<S> context{scope.strategy(), reader};
    return fn(context, select_replica(reader, args)...);
  };
  const std::size_t copies = variable.copies();
  using Result = std::decay_t<decltype(update_one(0))>;
  if constexpr (std::is_void_v<Result>) {
    for (std::size_t copy = 0; copy < copies; ++copy) update_one(copy);
  } else {
    return PerReplica<Result>(copies, update_one);
  }
}
/// Calls `fn(context, args...)` for this replica's copy of `variable`, in a replica function. If replicas share a copy,
/// this is a collective call, in which one of them updates it (spec D04, E11).
template <class S, class Variable, class Fn, class... Args>
void update(const ReplicaContext<S>& replica, const Variable& variable, Fn&& fn, Args&&... args) {
  static_cast<void>(variable.component(replica));
  (require_value_per_replica(replica.strategy().num_local_replicas(), args), ...);
  S::Store::once(replica, [&] {
    UpdateContext<S> context{replica.strategy(), replica.local_index()};
    fn(context, select_replica(replica.local_index(), args)...);
  });
}

}  // namespace dist
