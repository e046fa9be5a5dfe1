#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <dist/comm/call_sequence.hpp>
#include <dist/comm/failure_notice.hpp>

namespace dist::detail {

/// Says that a member will not take part in collective `sequence` of its group: bytes that mean the same in another
/// process.
struct Notice {
  std::uint64_t sequence = 0;
  CallSequence::Position place;  ///< where the member stands in its program
  FailureNotice failure;
};

struct NoticeFrom {
  Notice notice;
  std::size_t peer = 0;
};

/// Where one member of a group of processes stands in its program, and the failures that kept members from collectives,
/// however it heard of them: from messages, or from the memory that the members share.
///
/// A failure takes the place of the collective that its member could not come to. Members in the run or call where it
/// happened, or in an earlier one, throw it there. Where they have left that run behind, it concerns nobody else: the
/// collective is skipped, and the members call again in the next one.
class KnownFailures {
 public:
  /// Where this member's calls stand.
  [[nodiscard]] CallSequence& place() noexcept { return place_; }
  [[nodiscard]] const CallSequence& place() const noexcept { return place_; }

  /// All members have done a collective.
  void met() noexcept {
    place_.met();
    last_skipped_.reset();
  }
  void note(const NoticeFrom& told) {
    if (place_.note(told.notice.place)) closed_by_ = told;
  }
  /// Whether this failure, instead of the call that this member waits for, concerns nobody else. Notes it if so.
  [[nodiscard]] bool skip(const NoticeFrom& told) {
    if (!place_.is_past(told.notice.place)) return false;
    note(told);
    last_skipped_ = told;
    return true;
  }

  /// The failure in the run that this member is in: no collective is done there any more.
  [[nodiscard]] const NoticeFrom* find_closed() const noexcept { return place_.is_closed() ? &closed_by_ : nullptr; }
  /// The failure that `peer` told of, and that concerned nobody else, since the last collective that all did.
  [[nodiscard]] const FailureNotice* skipped_of(std::size_t peer) const noexcept {
    return last_skipped_ && last_skipped_->peer == peer ? &last_skipped_->notice.failure : nullptr;
  }
  /// That a worker ended because of a failure says less than the failure.
  [[nodiscard]] const NoticeFrom& more_precise(const NoticeFrom& told) const noexcept {
    const bool says_less = told.notice.failure.is_last() && !told.notice.failure.breaks_the_group();
    return says_less && skipped_of(told.peer) != nullptr ? *last_skipped_ : told;
  }

 private:
  CallSequence place_;
  NoticeFrom closed_by_{};  // the failure in the run that this member is in, or in a later one
  std::optional<NoticeFrom> last_skipped_;
};

}  // namespace dist::detail
