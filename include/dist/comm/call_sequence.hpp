#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist {

/// The position of a member of a group of processes in its program: inside or outside of a run, and how many runs and
/// calls outside of runs it has begun since the last collective of all members. Members compare it with every call, so a
/// call in one run never meets a call outside, or in another run.
///
/// Every run counts, whether it makes collectives or not, except a run of one process alone (`begin_alone`). Functions are
/// not compared, so members of different roles may meet. After a failure or a disagreement, members compare everything
/// that they have begun since, function by function, until a collective succeeds: the failure tells a member whose count
/// differs.
class CallSequence {
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
  /// Begins a run that the other members do not share, and do not count.
  void begin_alone() noexcept { alone_ = true; }
  void end_run() noexcept { inside_ = alone_ = false; }
  /// Of a call that the processes make together outside of runs.
  void begin_call() noexcept { begin(0); }

  [[nodiscard]] Position position() const noexcept { return {distance(), history_}; }
  /// What travels with a call. Equal for members that may do it together.
  [[nodiscard]] std::uint64_t mark() const noexcept {
    const std::uint64_t begun = exact_ ? history_ * odd + distance() : distance();
    return begun * unit + (exact_ ? exact : 0) + (inside_ ? inside : 0);
  }
  /// The meaning of a mark, for messages: "outside run".
  [[nodiscard]] static std::string describe(std::uint64_t mark);

  /// True if this member is in a run of its process alone.
  [[nodiscard]] bool is_alone() const noexcept { return alone_; }
  /// Throws WrongStrategy if it is, because the other members do not make the call `operation`.
  void require_shared(std::string_view operation) const {
    if (alone_) [[unlikely]]
      refuse_alone(operation);
  }
  [[noreturn]] static void refuse_alone(std::string_view operation);

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
  // The parts of a mark.
  static constexpr std::uint64_t inside = 1;
  static constexpr std::uint64_t exact = 2;
  static constexpr std::uint64_t unit = 4;
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
  bool alone_ = false;
  std::uint64_t closed_through_ = 0;  // by failures of others
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/call_sequence.ipp>
#endif
