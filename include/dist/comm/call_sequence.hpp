#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist {

/// The position of a process in its program: inside or outside a run, and the number of runs and other calls since the
/// last collective of all members. Members compare it with every call, so a call never matches a call of another run,
/// or outside runs.
///
/// Every run counts, except runs of one process alone (`begin_alone`). Functions are not compared, so members with
/// different roles can take part. After a failure or mismatch, members compare the full history since the last
/// collective, including functions, until a collective succeeds.
class CallSequence {
 public:
  /// The progress of a member, for comparison.
  struct Position {
    std::uint64_t distance = 0;  ///< runs and calls begun since the last common collective
    std::uint64_t history = 0;   ///< fingerprint of these runs and calls
  };
  /// After all other positions.
  static constexpr Position behind_all{std::numeric_limits<std::uint64_t>::max(), 0};

  /// Begins a run. `kind` identifies the function of the run.
  void begin_run(std::uint64_t kind) noexcept {
    begin(2 * kind + 1);
    inside_ = true;
  }
  /// Begins a run of this process alone. The other members do not count it.
  void begin_alone() noexcept { alone_ = true; }
  void end_run() noexcept { inside_ = alone_ = false; }
  /// Begins a common call outside runs.
  void begin_call() noexcept { begin(0); }

  /// The progress to report with a failure.
  [[nodiscard]] Position position() const noexcept { return {distance(), history_}; }
  /// The position as sent with each call: equal for matching calls.
  [[nodiscard]] std::uint64_t mark() const noexcept {
    const std::uint64_t begun = exact_ ? history_ * odd + distance() : distance();
    return begun * unit + (exact_ ? exact : 0) + (inside_ ? inside : 0);
  }
  /// Text of a mark for messages, such as "outside run".
  [[nodiscard]] static std::string describe(std::uint64_t mark) {
    const bool is_inside = mark % exact != 0;
    if (mark % unit >= exact) return is_inside ? "in a run after a failure" : "outside run, after a failure";
    const std::uint64_t begun = mark / unit;
    if (is_inside && begun == 0) return "in the same run as the last collective";
    if (begun == 0) return "outside run";
    return concat(is_inside ? "in a run" : "outside run", ", number ", begun,
                  " of the runs and calls since the last collective");
  }

  /// True if this member is in a run of its process alone.
  [[nodiscard]] bool is_alone() const noexcept { return alone_; }
  /// Throws WrongStrategy in a run of this process alone.
  void require_shared(std::string_view operation) const {
    if (alone_) [[unlikely]]
      refuse_alone(operation);
  }
  /// Throws the WrongStrategy of `require_shared`, out of line.
  [[noreturn]] static void refuse_alone(std::string_view operation) {
    throw WrongStrategy(concat(operation, " was called in run_here"), "the other processes do not share this run",
                        "Call strategy.run in all processes");
  }

  /// Records that a collective completed on all members.
  void met() noexcept {
    base_ = begun_;
    history_ = 0;
    exact_ = false;
    closed_through_ = 0;
  }
  /// Records that a collective did not complete on all members.
  void disturb() noexcept { exact_ = true; }

  /// True if a failure at that position cannot affect a call that this member waits for: the histories agree up to it,
  /// and this member has moved on.
  [[nodiscard]] bool is_past(const Position& failure) const noexcept {
    return failure.distance < distance() && failure.distance <= most_histories &&
           failure.history == (failure.distance == 0 ? 0 : histories_[failure.distance - 1]);
  }
  /// Records another member's failure at that position. Returns true if it closes runs of this member, and no earlier
  /// failure closes more.
  bool note(const Position& failure) noexcept {
    exact_ = true;
    if (is_past(failure)) return false;
    const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - base_;
    const std::uint64_t through = base_ + std::min(failure.distance, room);
    if (through < closed_through_) return false;
    closed_through_ = through;
    return true;
  }
  /// True if a member has failed in the current run, which then has no more collectives.
  [[nodiscard]] bool is_closed() const noexcept { return inside_ && begun_ <= closed_through_; }

 private:
  // The layout of a mark.
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
  std::uint64_t base_ = 0;  // value of begun_ at the last common collective
  std::uint64_t history_ = 0;
  std::uint64_t histories_[most_histories];  // history after each of the first runs and calls since then
  bool inside_ = false;
  bool exact_ = false;
  bool alone_ = false;
  std::uint64_t closed_through_ = 0;  // last run closed by failures of other members
};

}  // namespace dist
