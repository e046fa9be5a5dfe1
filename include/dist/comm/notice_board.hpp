#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dist/comm/call_sequence.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/core/algorithms.hpp>

namespace dist::detail {

/// A member's knowledge of the collectives of its group, which passes messages: the current one, and failures that keep
/// members from them (KnownFailures). Neither sends nor waits: its owner forwards notices, and throws returned
/// failures.
class NoticeBoard {
 public:
  explicit NoticeBoard(std::size_t rank, std::size_t members) : rank_(rank), heard_(members) {}

  /// The number of the current or last collective.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] CallSequence& place() noexcept { return failures_.place(); }

  /// Starts a unit of work: after it, a failure is reported again.
  void begin_attempt() noexcept { all_know_ = false; }
  /// True if all members know the failure that ended this unit of work.
  [[nodiscard]] bool all_know() const noexcept { return all_know_; }

  /// Starts the wait for the others' calls, until `end_meeting`.
  void begin_meeting() noexcept { meets_ = true; }
  void end_meeting() noexcept { meets_ = false; }

  /// Enters the next collective. Returns a known failure that keeps all members from it.
  [[nodiscard]] std::optional<NoticeFrom> enter() {
    ++sequence_;
    all_know_ = false;
    skips_ = false;
    for (std::size_t i = 0; i < later_.size();) {
      if (later_[i].notice.sequence != sequence_)
        ++i;
      else if (skip(later_[i]))
        later_.erase(later_.begin() + static_cast<std::ptrdiff_t>(i));
      else
        return take_later();
    }
    return std::nullopt;
  }
  /// Enters the next collective without comparing calls. Returns a known failure that keeps all members from it.
  [[nodiscard]] std::optional<NoticeFrom> count() {
    ++sequence_;
    all_know_ = false;
    unsettled_from_ = 0;
    return find_abandoned(sequence_);
  }
  /// True if a failure that does not affect other members skips the collective.
  [[nodiscard]] bool skips() const noexcept { return skips_; }

  /// Records that all members have entered with the same call.
  void succeed() noexcept {
    succeeded_ = sequence_;
    furthest_ = {};
    failures_.met();
  }
  /// Records that all members have entered with different calls.
  void differ() noexcept {
    all_know_of(sequence_);
    place().disturb();
  }

  /// Processes a peer's failure. Returns the failure that this member throws, if any.
  [[nodiscard]] std::optional<NoticeFrom> hear(const NoticeFrom& told) {
    const Notice& notice = told.notice;
    heard_[told.peer] = std::max(heard_[told.peer], notice.sequence);
    const bool breaks = notice.failure.breaks_the_group();
    if (!breaks) {
      if (notice.sequence < sequence_ || notice.sequence == failed_) return hear_late(told);
      if (notice.sequence > sequence_) {
        later_.push_back(told);  // its sender has done its part of this collective
        return std::nullopt;
      }
      if (meets_ && skip(told)) return std::nullopt;
    }
    note(told);
    all_know_of(notice.sequence);
    fail();
    return failures_.more_precise(told);
  }

  /// Records that this member does not enter the next collective. Returns the notice for its peers.
  [[nodiscard]] Notice cancel(const FailureNotice& failure) {
    note({{sequence_ + 1, place().position(), failure}, rank_});
    all_know_of(sequence_ + 1);
    fail();
    return notice_of(failure);
  }
  /// Records that this member cannot continue. Returns the notice for its peers.
  [[nodiscard]] Notice fail(const FailureNotice& failure) {
    all_know_of(sequence_ + 1);
    return notice_of(failure);
  }
  /// Returns the failure that closed the current run.
  [[nodiscard]] std::optional<NoticeFrom> find_closed() noexcept {
    const NoticeFrom* const closed = failures_.find_closed();
    if (closed == nullptr) return std::nullopt;
    all_know_ = true;
    return *closed;
  }
  /// Returns the failure that keeps its member from collective `sequence`, unless this member has entered it.
  [[nodiscard]] std::optional<NoticeFrom> find_abandoned(std::uint64_t sequence) {
    if (later_.empty() || first_of_later()->notice.sequence != sequence) return std::nullopt;
    return take_later();
  }
  /// Returns the failure of `peer` that was skipped since the last common collective, or null.
  [[nodiscard]] const FailureNotice* skipped_of(std::size_t peer) const noexcept { return failures_.skipped_of(peer); }

  /// A failure: its member, the collective, and the member's distance from the last common collective.
  struct Failure {
    std::uint64_t peer = 0;
    std::uint64_t sequence = 0;
    std::uint64_t distance = 0;
  };
  /// The known failure since the last common collective that closes most runs.
  [[nodiscard]] const Failure& furthest() const noexcept { return furthest_; }
  [[nodiscard]] bool knows(const Failure& failure) const noexcept {
    return failure.peer == rank_ || heard_[failure.peer] >= failure.sequence;
  }

  /// The first recent failed collective after which members have not yet exchanged known failures; 0: none. A failure
  /// in it, in another run, may affect this member's next call.
  [[nodiscard]] std::uint64_t unsettled() const noexcept { return unsettled_from_; }
  void settle() noexcept { unsettled_from_ = unsettled_from_ == sequence_ ? 0 : unsettled_from_ + 1; }

 private:
  [[nodiscard]] Notice notice_of(const FailureNotice& failure) const {
    return {sequence_, failure.is_last() ? CallSequence::behind_all : failures_.place().position(), failure};
  }
  /// Records that all members see a failure in this collective. Other failures there may affect later runs.
  void all_know_of(std::uint64_t sequence) noexcept {
    sequence_ = failed_ = sequence;
    all_know_ = true;
    for (const NoticeFrom& each : later_)
      if (each.notice.sequence <= sequence) note(each);
    std::erase_if(later_, [&](const NoticeFrom& each) { return each.notice.sequence <= sequence; });
  }
  void fail() noexcept {
    if (unsettled_from_ == 0) unsettled_from_ = sequence_;
  }
  /// If this failure, received instead of a call, does not affect other members, records it and returns true.
  [[nodiscard]] bool skip(const NoticeFrom& told) {
    if (!failures_.skip(told)) return false;
    measure(told);
    skips_ = true;
    fail();
    return true;
  }
  void note(const NoticeFrom& told) {
    failures_.note(told);
    measure(told);
  }
  void measure(const NoticeFrom& told) noexcept {
    const Failure failure{told.peer, told.notice.sequence, told.notice.place.distance};
    if (failure.distance >= furthest_.distance) furthest_ = failure;
  }
  /// Processes a further failure at a collective: members that fail at the same collective in different runs are all
  /// recorded.
  [[nodiscard]] std::optional<NoticeFrom> hear_late(const NoticeFrom& told) {
    if (told.notice.sequence <= succeeded_) return std::nullopt;
    if (!meets_ || !failures_.skip(told)) failures_.note(told);
    measure(told);
    return meets_ ? find_closed() : std::nullopt;
  }
  [[nodiscard]] std::vector<NoticeFrom>::const_iterator first_of_later() const noexcept {
    return std::min_element(later_.begin(), later_.end(), [](const NoticeFrom& one, const NoticeFrom& other) {
      return one.notice.sequence < other.notice.sequence;
    });
  }
  [[nodiscard]] NoticeFrom take_later() {
    const NoticeFrom came = *first_of_later();
    all_know_of(came.notice.sequence);
    fail();
    return failures_.more_precise(came);
  }

  std::size_t rank_;
  KnownFailures failures_;
  std::uint64_t sequence_ = 0;
  std::uint64_t succeeded_ = 0;  // last collective that all members entered
  std::uint64_t failed_ = 0;     // last collective in which all saw a failure
  bool all_know_ = false;
  bool meets_ = false;
  bool skips_ = false;
  Failure furthest_;
  std::uint64_t unsettled_from_ = 0;
  std::vector<std::uint64_t> heard_;  // last collective that each peer reported to miss
  std::vector<NoticeFrom> later_;     // failures in collectives not yet reached
};

}  // namespace dist::detail
