#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dist/comm/call_sequence.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/known_failures.hpp>
#include <dist/core/algorithms.hpp>

namespace dist::detail {

/// What one member of a group that passes messages knows about the group's collectives: which one it is in, and which
/// failures keep members from them (KnownFailures). It neither sends nor waits: the member passes on what it hears, and
/// throws what it is given.
class NoticeBoard {
 public:
  explicit NoticeBoard(std::size_t rank, std::size_t members) : rank_(rank), heard_(members) {}

  /// The number of the collective that this member is in or was in last.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  /// Where this member's calls stand.
  [[nodiscard]] CallSequence& place() noexcept { return failures_.place(); }

  /// Starts a new attempt: from here on a failure is reported again.
  void begin_attempt() noexcept { all_know_ = false; }
  /// Whether all members know of the failure that ended this attempt.
  [[nodiscard]] bool all_know() const noexcept { return all_know_; }

  /// This member waits for the others' calls, until `end_meeting`.
  void begin_meeting() noexcept { meets_ = true; }
  void end_meeting() noexcept { meets_ = false; }

  /// This member comes to the next collective. Returns the failure that keeps all from it, where it is known.
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
  /// The same for a collective in which calls are not compared.
  [[nodiscard]] std::optional<NoticeFrom> count() {
    ++sequence_;
    all_know_ = false;
    unsettled_from_ = 0;
    return find_abandoned(sequence_);
  }
  /// Whether the collective is skipped, for a failure that concerns nobody else.
  [[nodiscard]] bool skips() const noexcept { return skips_; }

  /// All members have come to the collective, with the same call.
  void succeed() noexcept {
    succeeded_ = sequence_;
    furthest_ = {};
    failures_.met();
  }
  /// All members have come, with different calls.
  void differ() noexcept {
    all_know_of(sequence_);
    place().disturb();
  }

  /// A peer tells of a failure. Returns the one that this member throws, if any.
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

  /// This member does not come to the next collective. Returns what its peers are told.
  [[nodiscard]] Notice cancel(const FailureNotice& failure) {
    note({{sequence_ + 1, place().position(), failure}, rank_});
    all_know_of(sequence_ + 1);
    fail();
    return notice_of(failure);
  }
  /// This member cannot go on at all.
  [[nodiscard]] Notice fail(const FailureNotice& failure) {
    all_know_of(sequence_ + 1);
    return notice_of(failure);
  }
  /// The failure in the run that this member is in: no collective is done there any more.
  [[nodiscard]] std::optional<NoticeFrom> find_closed() noexcept {
    const NoticeFrom* const closed = failures_.find_closed();
    if (closed == nullptr) return std::nullopt;
    all_know_ = true;
    return *closed;
  }
  /// The failure that keeps its member from collective `sequence`, as long as this member has not come there.
  [[nodiscard]] std::optional<NoticeFrom> find_abandoned(std::uint64_t sequence) {
    if (later_.empty() || first_of_later()->notice.sequence != sequence) return std::nullopt;
    return take_later();
  }
  /// The failure that `peer` told of, and that concerned nobody else, since the last collective that all did.
  [[nodiscard]] const FailureNotice* skipped_of(std::size_t peer) const noexcept { return failures_.skipped_of(peer); }

  /// A failure by its member, its collective, and how far that member had come.
  struct Failure {
    std::uint64_t peer = 0;
    std::uint64_t sequence = 0;
    std::uint64_t distance = 0;
  };
  /// Of the failures since the last collective that all did, the one that closes most runs, as far as this member knows.
  [[nodiscard]] const Failure& furthest() const noexcept { return furthest_; }
  [[nodiscard]] bool knows(const Failure& failure) const noexcept {
    return failure.peer == rank_ || heard_[failure.peer] >= failure.sequence;
  }

  /// The first of the last collectives that failed, and after which members have not yet told each other which failures
  /// they know of; 0: there is none. What failed in it, in another run, may concern this member's next call.
  [[nodiscard]] std::uint64_t unsettled() const noexcept { return unsettled_from_; }
  void settle() noexcept { unsettled_from_ = unsettled_from_ == sequence_ ? 0 : unsettled_from_ + 1; }

 private:
  [[nodiscard]] Notice notice_of(const FailureNotice& failure) const {
    return {sequence_, failure.is_last() ? CallSequence::behind_all : failures_.place().position(), failure};
  }
  /// All members see a failure in this collective. Others that kept members from it may concern later runs.
  void all_know_of(std::uint64_t sequence) noexcept {
    sequence_ = failed_ = sequence;
    all_know_ = true;
    for (const NoticeFrom& each : later_)
      if (each.notice.sequence <= sequence) note(each);
    std::erase_if(later_, [&](const NoticeFrom& each) { return each.notice.sequence <= sequence; });
  }
  /// The collective that this member is in fails.
  void fail() noexcept {
    if (unsettled_from_ == 0) unsettled_from_ = sequence_;
  }
  /// Whether this failure, instead of the call that this member waits for, concerns nobody else.
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
  /// It is not the first failure that kept this member from a collective. Members that failed at the same collective in
  /// different runs are all heard.
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
  std::uint64_t succeeded_ = 0;  // the last collective to which all members came
  std::uint64_t failed_ = 0;     // the last collective in which all members saw a failure
  bool all_know_ = false;
  bool meets_ = false;
  bool skips_ = false;
  Failure furthest_;
  std::uint64_t unsettled_from_ = 0;
  std::vector<std::uint64_t> heard_;  // the last collective to which each peer did not come, as it told
  std::vector<NoticeFrom> later_;     // about collectives that this member has not reached
};

}  // namespace dist::detail
