/// What sees the values of all replicas at once, in the cross-replica context. Collective calls of the processes.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/comm/communication_options.hpp>
#include <dist/context/agreed_structure.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/strategy/combine_values.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist {

namespace detail {

/// What `combine(workers)` makes of a value that `operation` was given, the same on all workers.
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

/// The values of all replicas become one (spec C07): numbers, and what stands for one such as an nn::Loss, to a number,
/// tensors element by element to a new tensor, contiguous ranges of numbers to one of their type, indexed slices to those
/// of all replicas one after another, and the members of tuples, pairs, arrays, optionals and plain structs each for itself. A plain value, which is
/// what `run` returns where there is one replica, is returned as it is (spec C11); under MultiWorker each process
/// gives its own, and these become one (spec C13). Processes wait for each other as long as `options.timeout` says (spec
/// H13).
///
/// Throws ShapeMismatch for tensors of different shapes, InvalidArgument for the sum of a plain value where there are
/// several replicas: it could mean the value, or that many times the value.
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
/// The copies of a variable become one. OnRead: whichever the variable's own aggregation is. OnWrite, whose copies
/// are equal: the value, under a mean or a maximum (spec C12, E04).
template <class S, class Op, class T, class Sync, class Agg, class Device>
[[nodiscard(DIST_REDUCE_RETURNS)]] Tensor<T> reduce(const CrossReplicaContext<S>& scope, Op op,
                                                    const DistributedVariable<T, Sync, Agg, Device>& variable) {
  static_assert(!detail::is_on_shard<Sync>, "an OnShard variable has one value for each element: read it");
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
/// Also along axes of the values (spec C09): of `{0, 1}` the elements of rows and columns of all replicas are
/// combined, and the result is a tensor without these axes. The values may differ in extent along them; the mean is
/// that of all elements, whichever replica holds how many (spec C10). A plain tensor is reduced along its axes.
///
/// Throws InvalidArgument for an axis that the values do not have, ShapeMismatch for other differences.
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

/// The values of all replicas, concatenated along `axis` in replica order (spec C14). They may differ in extent
/// along that axis only: throws ShapeMismatch, also for scalars, and InvalidArgument for an axis that they do not
/// have.
template <class S, class Value>
[[nodiscard(DIST_GATHER_RETURNS)]] auto gather(const CrossReplicaContext<S>& scope, const Value& value, int axis,
                                               const CommunicationOptions& options = {}) {
  return detail::combine_together(scope.strategy(), "gather was given", value, options,
                                  [&](const auto& workers) { return detail::gather_values(value, axis, workers); });
}

}  // namespace dist
