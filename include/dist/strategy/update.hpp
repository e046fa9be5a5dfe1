/// Functions that are called for each copy of a variable.
#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/context/contexts.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/select_replica.hpp>

namespace dist {

/// Calls `fn(context, args...)` for each copy of `variable`, with an UpdateContext in which variable operations act
/// on that copy; of PerReplica arguments the value that belongs to it (spec D04). Under CentralStorage there is one
/// copy, and the arguments are those of replica 0. Returns the results as a PerReplica, or nothing.
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
/// In a replica function: calls `fn(context, args...)` for this replica's copy of `variable`. Where replicas share a
/// copy a collective call, in which one of them updates it (spec D04, E11).
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
