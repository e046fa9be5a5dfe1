#pragma once

#include <dist/comm/call_sequence.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist {

DIST_INLINE std::string CallSequence::describe(std::uint64_t mark) {
  const bool is_inside = mark % exact != 0;
  if (mark % unit >= exact) return is_inside ? "in a run after a failure" : "outside run, after a failure";
  const std::uint64_t begun = mark / unit;
  if (is_inside && begun == 0) return "in the same run as the last collective";
  if (begun == 0) return "outside run";
  return concat(is_inside ? "in a run" : "outside run", ", number ", begun,
                " of the runs and calls since the last collective");
}

DIST_INLINE void CallSequence::refuse_alone(std::string_view operation) {
  throw WrongStrategy(concat(operation, " was called in run_here"), "the other processes do not share this run",
                      "Call strategy.run in all processes");
}

DIST_INLINE bool CallSequence::is_past(const Position& failure) const noexcept {
  return failure.distance < distance() && failure.distance <= most_histories &&
         failure.history == (failure.distance == 0 ? 0 : histories_[failure.distance - 1]);
}

DIST_INLINE bool CallSequence::note(const Position& failure) noexcept {
  exact_ = true;
  if (is_past(failure)) return false;
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - base_;
  const std::uint64_t through = base_ + std::min(failure.distance, room);
  if (through < closed_through_) return false;
  closed_through_ = through;
  return true;
}

}  // namespace dist
