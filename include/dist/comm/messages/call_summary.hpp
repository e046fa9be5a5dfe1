#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/comm/collective_call.hpp>
#include <dist/core/algorithms.hpp>

namespace dist::detail {

/// The call that a member brings to a collective.
struct BroughtCall {
  std::uint64_t rank = 0;
  CollectiveCallRecord call;
};

/// What is left to know of the calls that some members brought: whether they are the same, and if not, which ones are
/// not. Joining is commutative, associative, and idempotent, so that summaries can be passed on in any order.
struct CallSummary {
  BroughtCall first;         ///< of the lowest rank
  std::uint64_t differ = 0;  ///< whether there is another one
  BroughtCall other;         ///< of the lowest rank among those that differ from the first

  void join(const CallSummary& more) noexcept {
    if (differ == 0 && more.differ == 0 && more.first.call.fingerprint == first.call.fingerprint) {
      first.rank = std::min(first.rank, more.first.rank);
      return;
    }
    const CallSummary mine = *this;
    if (more.first.rank < first.rank) first = more.first;
    differ = 0;
    for (const CallSummary* part : {&mine, &more}) {
      consider(part->first);
      if (part->differ != 0) consider(part->other);
    }
  }

  /// The call of the lowest rank that differs from that with this fingerprint, which is a part of the summary.
  [[nodiscard]] const BroughtCall* find_different(std::uint64_t fingerprint) const noexcept {
    if (first.call.fingerprint != fingerprint) return &first;
    return differ != 0 ? &other : nullptr;
  }
  /// How many bytes of the summary have a meaning.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return differ != 0 ? sizeof(CallSummary) : offsetof(CallSummary, other);
  }

 private:
  void consider(const BroughtCall& one) noexcept {
    if (one.call.fingerprint == first.call.fingerprint || (differ != 0 && other.rank <= one.rank)) return;
    differ = 1;
    other = one;
  }
};

}  // namespace dist::detail
