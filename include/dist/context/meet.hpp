#pragma once

#include <span>

#include <dist/core/reduce_op.hpp>

namespace dist::detail {

/// Returns when all processes of a strategy have called it. Inside of `together`: throws PeerError where one of them cannot.
template <class S>
void meet(const S& strategy) {
  int processes = 1;
  strategy.workers().all_reduce(sum, std::span<int>{&processes, 1});
}

}  // namespace dist::detail
