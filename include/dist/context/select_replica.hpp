#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/context/per_replica.hpp>

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

}  // namespace dist
