#pragma once

#include <concepts>
#include <cstddef>
#include <string>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/store.hpp>

namespace dist {

/// A strategy: where replicas run, where variables live, how replicas talk. Library code is written against this.
template <class S>
concept Strategy = requires(S& strategy) {
  typename S::Device;
  typename S::Collectives;
  requires Store<typename S::Store>;
  { strategy.num_replicas_in_sync() } -> std::same_as<std::size_t>;
  { strategy.num_local_replicas() } -> std::same_as<std::size_t>;
  { strategy.scope() } -> InCrossReplica;
  { strategy.describe() } -> std::same_as<std::string>;
  strategy.run([](auto&) {});
};

}  // namespace dist
