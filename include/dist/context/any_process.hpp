#pragma once

#include <span>

#include <dist/context/together.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::detail {

/// Whether something holds in any process of a strategy: the same answer in all of them. A collective call of the processes,
/// outside replica functions. Throws PeerError where one of them cannot take part.
template <class S>
[[nodiscard]] bool any_process(const S& strategy, bool holds) {
  int any = holds ? 1 : 0;
  together(strategy, [&] { strategy.workers().all_reduce(max, std::span<int>{&any, 1}); });
  return any != 0;
}

}  // namespace dist::detail
