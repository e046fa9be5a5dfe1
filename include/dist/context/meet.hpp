#pragma once

#include <span>

#include <dist/core/reduce_op.hpp>

namespace dist::detail {

/// Returns when all processes have called it, whose collectives are `workers`. Inside of `together`: throws PeerError where
/// one of them cannot.
template <class Workers>
void meet(const Workers& workers) {
  int processes = 1;
  workers.all_reduce(sum, std::span<int>{&processes, 1});
}

}  // namespace dist::detail
