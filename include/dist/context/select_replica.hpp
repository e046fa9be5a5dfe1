#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/context/per_replica.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// What local replica `index` receives of an argument of `run`: its own value of a PerReplica, anything else whole
/// (spec C01, F06).
template <class Argument>
[[nodiscard]] constexpr auto& select_replica([[maybe_unused]] std::size_t index, Argument& argument) {
  if constexpr (is_per_replica<std::remove_cv_t<Argument>>) {
    return argument[index];
  } else {
    return argument;
  }
}

/// Throws WrongStrategy when `argument` holds values of another number of replicas than `replicas`.
template <class Argument>
void require_value_per_replica([[maybe_unused]] std::size_t replicas, [[maybe_unused]] const Argument& argument) {
  if constexpr (is_per_replica<Argument>) {
    if (argument.size() != replicas)
      throw WrongStrategy("run was given per-replica values of another strategy",
                          text(argument.size(), " values for ", replicas, " replicas"),
                          "Give run what this strategy's run or distribute_dataset returned");
  }
}

}  // namespace dist
