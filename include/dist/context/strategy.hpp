#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/store.hpp>

namespace dist {

namespace detail {
/// A replica function. (nvcc takes no lambda in a concept.)
struct DoNothing {
  void operator()(auto&) const {}
};
}  // namespace detail

/// A strategy: where replicas run, where variables live, how replicas talk. Library code is written against this.
template <class S>
concept Strategy = requires(S& strategy) {
  typename S::Device;
  typename S::Collectives;
  requires Store<typename S::Store>;
  { strategy.num_replicas_in_sync() } -> std::same_as<std::size_t>;
  { strategy.num_local_replicas() } -> std::same_as<std::size_t>;
  { strategy.num_workers() } -> std::same_as<std::size_t>;
  { strategy.worker_rank() } -> std::same_as<std::size_t>;
  { strategy.is_chief() } -> std::same_as<bool>;
  { strategy.scope() } -> InCrossReplica;
  { strategy.describe() } -> std::same_as<std::string>;
  strategy.run(detail::DoNothing{});
};

/// A strategy whose variables code of the host reads and writes where they are.
template <class S>
concept KeepsVariablesOnHost = Strategy<S> && S::Device::Place::host_accessible;

namespace detail {
/// What a class made on a strategy was given in its place, for a sentence.
template <class T>
concept NoStrategy = !Strategy<std::remove_reference_t<T>>;
}  // namespace detail

}  // namespace dist
