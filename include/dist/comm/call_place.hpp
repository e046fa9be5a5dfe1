#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist {

/// Where a member of a group of processes stands in its program: in a run or outside of runs, and what it has begun
/// since the last collective that all did. Members compare it with every call, so that what one calls in a run never
/// meets what another calls outside, or in another run.
///
/// How often members call `run` is their own affair while no collective is made in there: they compare whether a call is
/// outside, in the same run as the collective before, or in a later one. After a failure or a disagreement they compare
/// all that they have begun since, one by one, until a collective succeeds: members that lost count of each other's steps
/// are told so.
class CallPlace {
 public:
  /// A place, as another member can compare it with its own.
  struct Position {
    std::uint64_t distance = 0;  ///< runs and calls begun since the last collective that all did
    std::uint64_t history = 0;   ///< a fingerprint of them
  };
  /// Beyond everything that a member may begin.
  static constexpr Position behind_all{std::numeric_limits<std::uint64_t>::max(), 0};

  /// `kind` tells runs of different functions apart.
  void begin_run(std::uint64_t kind) noexcept {
    begin(2 * kind + 1);
    inside_ = true;
  }
  void end_run() noexcept { inside_ = false; }
  /// Of a call that the processes make together outside of runs.
  void begin_call() noexcept { begin(0); }

  [[nodiscard]] Position position() const noexcept { return {distance(), history_}; }
  /// What travels with a call. Equal for members that may do it together.
  [[nodiscard]] std::uint64_t mark() const noexcept {
    if (exact_) return first_exact + 2 * (history_ * odd + distance()) + (inside_ ? 1 : 0);
    return !inside_ ? outside : distance() == 0 ? in_same_run : in_later_run;
  }
  /// "outside run": what a mark means, for messages.
  [[nodiscard]] static std::string_view describe(std::uint64_t mark) noexcept;

  /// All members have done a collective.
  void met() noexcept {
    base_ = begun_;
    history_ = 0;
    exact_ = false;
    closed_through_ = 0;
  }
  /// Not all members could do a collective.
  void disturb() noexcept { exact_ = true; }

  /// Whether a failure there kept its member from nothing that this one waits for: it happened in a run or call that this
  /// member has been through, and in which it met that member for the last time.
  [[nodiscard]] bool is_past(const Position& failure) const noexcept;
  /// A member has failed there. Returns whether that closes runs of this member, and no failure noted before closes more.
  bool note(const Position& failure) noexcept;
  /// Whether this member is in a run in which one has failed: no collective is done there any more.
  [[nodiscard]] bool is_closed() const noexcept { return inside_ && begun_ <= closed_through_; }

 private:
  static constexpr std::uint64_t outside = 0;
  static constexpr std::uint64_t in_same_run = 1;
  static constexpr std::uint64_t in_later_run = 2;
  static constexpr std::uint64_t first_exact = 4;
  static constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  static constexpr std::size_t most_histories = 128;

  [[nodiscard]] std::uint64_t distance() const noexcept { return begun_ - base_; }
  void begin(std::uint64_t kind) noexcept {
    ++begun_;
    inside_ = false;
    history_ = (history_ ^ (kind + distance())) * odd;
    history_ ^= history_ >> 29;
    if (distance() <= most_histories) histories_[distance() - 1] = history_;
  }

  std::uint64_t begun_ = 0;
  std::uint64_t base_ = 0;  // of them up to the last collective that all did
  std::uint64_t history_ = 0;
  std::uint64_t histories_[most_histories];  // after each of the first that were begun since
  bool inside_ = false;
  bool exact_ = false;
  std::uint64_t closed_through_ = 0;  // by failures of others
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/call_place.ipp>
#endif
