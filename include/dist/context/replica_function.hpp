#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <dist/context/select_replica.hpp>
#include <dist/core/type_traits.hpp>

namespace dist::detail {

/// What a replica receives of an argument of type `Argument` of `run`.
template <class Argument>
using Received = decltype(select_replica(std::size_t{}, std::declval<std::remove_reference_t<Argument>&>()));

/// Refuses, in a sentence, what `run` cannot call, and says whether it can.
template <class Fn, class Context, class... Args>
[[nodiscard]] constexpr bool require_replica_function() {
  constexpr bool callable = is_callable<std::remove_reference_t<Fn>, Context&, Received<Args>...>();
  static_assert(
      callable,
      "run calls its function with the replica context by reference, then with what the replica receives of each "
      "argument (of a PerReplica its own value): this function does not take these");
  return callable;
}

/// Refuses what a replica function may not return where replicas run at the same time, and says whether it may.
template <class Result>
[[nodiscard]] constexpr bool require_place_of_result() {
  constexpr bool has_place = std::default_initializable<Result>;
  static_assert(
      has_place,
      "what a replica function returns must be default-constructible: its place is made before the replicas run");
  return has_place;
}

}  // namespace dist::detail
