#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>

#include <dist/comm/call_sequence.hpp>
#include <dist/core/algorithms.hpp>

namespace dist {

/// A process's reason for missing a collective, as sent to its peers: bytes that other processes can read. Long texts
/// are truncated.
class FailureNotice {
 public:
  /// All zero bytes: a notice without a text.
  FailureNotice() = default;
  /// A notice that raises PeerError with the text `why`.
  FailureNotice(std::string_view why) { store(why, why_); }
  /// A notice that raises PeerError with the text `why`.
  FailureNotice(const char* why) : FailureNotice(std::string_view{why}) {}
  /// A ReplicaError is replaced by its cause if this is an error of processes.
  FailureNotice(const std::exception& error);

  /// Returns this notice, marked as final: the process enters no later collective.
  [[nodiscard]] FailureNotice for_good() const;
  /// True if the process enters no later collective.
  [[nodiscard]] bool is_last() const noexcept { return is_last_ || breaks_the_group(); }

  /// True if the sender cannot continue: it lost another process, or its wait timed out.
  [[nodiscard]] bool breaks_the_group() const noexcept { return kind_ == Kind::lost || kind_ == Kind::deadline; }

  /// Throws the error for the peers of worker `rank`, the sender: CollectiveMismatch, DeadlineExceeded or Unavailable
  /// if the sender had this error, otherwise PeerError.
  [[noreturn]] void raise(std::size_t rank, std::string_view host) const;

 private:
  /// `of_peer` and `lost` refer to process `rank_` on `host_`, not to the sender.
  enum class Kind : std::uint64_t { other, of_peer, mismatch, deadline, lost };

  FailureNotice(Kind kind, std::size_t rank, std::string_view host, std::string_view why);
  template <std::size_t size>
  static void store(std::string_view words, std::array<char, size>& place) noexcept {
    std::memcpy(place.data(), words.data(), std::min(words.size(), size - 1));
  }

  Kind kind_ = Kind::other;
  std::uint64_t is_last_ = 0;
  std::uint64_t rank_ = 0;
  std::array<char, 256> host_{};
  std::array<char, 1024> why_{};
};

namespace detail {

/// Reports that a member does not enter collective `sequence`: bytes that other processes can read.
struct Notice {
  std::uint64_t sequence = 0;
  CallSequence::Position place;  ///< of the member in its program
  FailureNotice failure;
};

struct NoticeFrom {
  Notice notice;
  std::size_t peer = 0;
};

/// The position of one process in its program, and the failures known to it, from messages or shared memory.
///
/// A failure replaces the collective that the failed member missed. Members in the same or an earlier run or call throw
/// it. Members that have already left this run are not affected: they skip the collective, and repeat the call in the
/// next one.
class KnownFailures {
 public:
  [[nodiscard]] CallSequence& place() noexcept { return place_; }
  [[nodiscard]] const CallSequence& place() const noexcept { return place_; }

  /// Records that a collective completed on all members.
  void met() noexcept {
    place_.met();
    last_skipped_.reset();
  }
  void note(const NoticeFrom& told) {
    if (place_.note(told.notice.place)) closed_by_ = told;
  }
  /// If this failure, received instead of a call, does not affect other members, records it and returns true.
  [[nodiscard]] bool skip(const NoticeFrom& told) {
    if (!place_.is_past(told.notice.place)) return false;
    note(told);
    last_skipped_ = told;
    return true;
  }

  /// Returns the failure that closed the current run, or null. A closed run has no more collectives.
  [[nodiscard]] const NoticeFrom* find_closed() const noexcept { return place_.is_closed() ? &closed_by_ : nullptr; }
  /// Returns the failure of `peer` that was skipped since the last common collective, or null.
  [[nodiscard]] const FailureNotice* skipped_of(std::size_t peer) const noexcept {
    return last_skipped_ && last_skipped_->peer == peer ? &last_skipped_->notice.failure : nullptr;
  }
  /// Prefers the original failure to a notice that the worker exited because of it.
  [[nodiscard]] const NoticeFrom& more_precise(const NoticeFrom& told) const noexcept {
    const bool says_less = told.notice.failure.is_last() && !told.notice.failure.breaks_the_group();
    return says_less && skipped_of(told.peer) != nullptr ? *last_skipped_ : told;
  }

 private:
  CallSequence place_;
  NoticeFrom closed_by_{};  // failure in the current or a later run
  std::optional<NoticeFrom> last_skipped_;
};

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/failure_notice.ipp>
#endif
