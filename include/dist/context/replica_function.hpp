#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <dist/context/select_replica.hpp>

namespace dist::detail {

/// What a replica receives of an argument of type `Argument` of `run`.
template <class Argument>
using Received = decltype(select_replica(std::size_t{}, std::declval<std::remove_reference_t<Argument>&>()));

/// What `fn(context, received arguments…)` returns.
template <class Fn, class Context, class... Args>
using ReplicaResult = std::invoke_result_t<Fn&, Context&, Received<Args>...>;

/// Refuses, in a sentence, what `run` cannot call.
template <class Fn, class Context, class... Args>
constexpr void require_replica_function() {
  static_assert(
      std::is_invocable_v<Fn&, Context&, Received<Args>...>,
      "run calls its function with the replica context by reference, then with what the replica receives of each "
      "argument (of a PerReplica its own value): this function does not take these");
}

}  // namespace dist::detail
