#pragma once

#include <dist/comm/call_place.hpp>
#include <dist/core/algorithms.hpp>

namespace dist {

DIST_INLINE std::string_view CallPlace::describe(std::uint64_t mark) noexcept {
  if (mark == outside) return "outside run";
  if (mark == in_same_run) return "in the same run as the collective before";
  if (mark == in_later_run) return "in a later run than the collective before";
  return mark % 2 == 0 ? "outside run, after a failure" : "in a run after a failure";
}

DIST_INLINE bool CallPlace::is_past(const Position& failure) const noexcept {
  return failure.distance < distance() && failure.distance <= most_histories &&
         failure.history == (failure.distance == 0 ? 0 : histories_[failure.distance - 1]);
}

DIST_INLINE bool CallPlace::note(const Position& failure) noexcept {
  exact_ = true;
  if (is_past(failure)) return false;
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - base_;
  const std::uint64_t through = base_ + std::min(failure.distance, room);
  if (through < closed_through_) return false;
  closed_through_ = through;
  return true;
}

}  // namespace dist
