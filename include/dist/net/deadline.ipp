#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/core/text.hpp>
#include <dist/net/deadline.hpp>

namespace dist::net {

DIST_INLINE Deadline Deadline::in(Milliseconds wait) {
  return Deadline{Clock::now() + std::min(wait, Milliseconds{std::chrono::hours{24 * 3650}})};
}
DIST_INLINE bool Deadline::passed() const { return Clock::now() >= at_; }
DIST_INLINE Milliseconds Deadline::left() const {
  return std::max(Milliseconds{0}, std::chrono::ceil<Milliseconds>(at_ - Clock::now()));
}
DIST_INLINE int Deadline::poll_timeout(Milliseconds longest) const {
  return static_cast<int>(std::min(left(), longest).count());
}
DIST_INLINE Deadline Deadline::sooner(Deadline other) const { return Deadline{std::min(at_, other.at_)}; }
DIST_INLINE Deadline Deadline::later(Milliseconds wait) const { return Deadline{at_ + wait}; }

}  // namespace dist::net
