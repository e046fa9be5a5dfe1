#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/messages/polls.hpp>
#include <dist/comm/notice_board.hpp>
#include <dist/core/algorithms.hpp>

namespace dist::detail {

struct BroughtCall {
  std::uint64_t rank = 0;
  CollectiveCallRecord call;
};

/// A summary of several members' calls: whether they are the same, and if not, two different ones. Joining is
/// commutative, associative and idempotent, so that summaries can be combined in any order.
struct CallSummary {
  BroughtCall first;         ///< call of the lowest rank
  std::uint64_t differ = 0;  ///< 1 if calls differ
  BroughtCall other;         ///< different call of the lowest rank

  void join(const CallSummary& more) noexcept {
    if (differ == 0 && more.differ == 0 && more.first.call.fingerprint == first.call.fingerprint) {
      first.rank = std::min(first.rank, more.first.rank);
      return;
    }
    const CallSummary mine = *this;
    if (more.first.rank < first.rank) first = more.first;
    differ = 0;
    for (const CallSummary* part : {&mine, &more}) {
      consider(part->first);
      if (part->differ != 0) consider(part->other);
    }
  }

  /// Returns a call that differs from `fingerprint`, which is part of the summary, or null.
  [[nodiscard]] const BroughtCall* find_different(std::uint64_t fingerprint) const noexcept {
    if (first.call.fingerprint != fingerprint) return &first;
    return differ != 0 ? &other : nullptr;
  }
  /// The number of used bytes.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return differ != 0 ? sizeof(CallSummary) : offsetof(CallSummary, other);
  }

 private:
  void consider(const BroughtCall& one) noexcept {
    if (one.call.fingerprint == first.call.fingerprint || (differ != 0 && other.rank <= one.rank)) return;
    differ = 1;
    other = one;
  }
};

/// Agreement of a group, by messages, on the next call: the protocol of one member, except sending, receiving and
/// waiting. Call `begin(call)`, then `advance` after each arrival, until the state is final.
///
/// Calls spread by dissemination (`Dissemination`), with O(log P) messages per member and collective. Every member
/// receives every call, directly or indirectly, so none continues before all have arrived.
///
/// A failed member notifies all others directly and without waiting, because members that would forward its notice may
/// be computing. Others may have failed at the same collective in other runs. So the next call starts with a
/// dissemination of the failure that closes most runs, after which all remaining members have the same information.
class CallAgreement {
 public:
  struct Message {
    std::uint64_t number = 0;  ///< twice the number of the collective; plus one if about its failures
    NoticeBoard::Failure furthest;
    CallSummary calls;

    [[nodiscard]] bool settles() const noexcept { return number % 2 == 1; }
    /// The number of used bytes.
    [[nodiscard]] std::size_t bytes() const noexcept {
      return offsetof(Message, calls) + (settles() ? 0 : calls.bytes());
    }
  };
  enum class State : unsigned char {
    settling,    ///< waits for the others' knowledge of failures in a collective
    exchanging,  ///< waits for the others' calls
    met,         ///< all members make the same call
    different,   ///< all have arrived, with different calls: `different_call()`
    failed,      ///< the member must throw `failure()`
    idle         ///< no meeting
  };

  CallAgreement(std::size_t rank, std::size_t members)
      : rank_(rank), board_(rank, members), schedule_(rank, members), received_(schedule_.partners()) {}

  [[nodiscard]] NoticeBoard& board() noexcept { return board_; }
  [[nodiscard]] const NoticeBoard& board() const noexcept { return board_; }
  [[nodiscard]] const Dissemination& schedule() const noexcept { return schedule_; }

  /// Starts a meeting for `call`, whose names must stay valid until its end.
  void begin(const CollectiveCall& call) {
    call_ = call;
    last_ = mine_;
    board_.begin_meeting();
    if (const std::optional<NoticeFrom> closed = board_.find_closed())
      fail(*closed);
    else
      go_to(State::settling);
  }
  /// Processes received messages. Calls `send(partner, message)` for messages to send.
  template <class Send>
  void advance(Send&& send) {
    tell_failures(send);
    while (state_ == State::settling || state_ == State::exchanging) {
      const bool goes_on = state_ == State::settling ? settle(send) : exchange(send);
      if (!goes_on) return;
    }
  }
  /// Sends the first messages about failed collectives at once, so that others need not wait for this member's next
  /// call.
  template <class Send>
  void tell_failures(Send&& send) {
    if (board_.unsettled() == 0) return;
    for (told_ = std::max(told_, board_.unsettled() - 1); told_ < board_.sequence();) {
      ++told_;
      send_round(send, Message{2 * told_ + 1, board_.furthest(), {}}, 0);
    }
  }
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool is_settling() const noexcept { return state_ == State::settling; }
  /// True while further messages are needed.
  [[nodiscard]] bool is_waiting() const noexcept { return state_ <= State::exchanging; }
  /// Changes whenever this member waits for something else.
  [[nodiscard]] std::uint64_t stage() const noexcept { return stage_; }
  /// Ends the meeting, after a final state or an exception.
  void end() noexcept {
    board_.end_meeting();
    state_ = State::idle;
  }

  [[nodiscard]] const NoticeFrom& failure() const noexcept { return failure_; }
  [[nodiscard]] const BroughtCall& different_call() const noexcept { return different_; }

  /// Records that this member fails instead of entering the next collective. Returns the notice for its peers.
  [[nodiscard]] Notice cancel(const FailureNotice& failure) {
    mine_ = CollectiveCallRecord{{.operation = "a failure"}};
    return board_.cancel(failure);
  }
  /// True if this partner's last message is about an earlier collective.
  [[nodiscard]] bool wants(std::size_t partner) const noexcept { return received_[partner].number < number_; }
  /// The number of the awaited messages.
  [[nodiscard]] std::uint64_t awaits() const noexcept { return number_; }
  void receive(std::size_t partner, const Message& message) noexcept { received_[partner] = message; }

  [[nodiscard]] const CollectiveCallRecord& mine() const noexcept { return mine_; }
  [[nodiscard]] const CollectiveCallRecord& last() const noexcept { return last_; }

  /// True if this member waits for partners that forward others' calls.
  [[nodiscard]] bool hears_indirectly() const noexcept { return is_waiting() && round_ != 0; }
  /// Calls `visit(peer)` for each awaited member.
  template <class Visit>
  void for_each_awaited(Visit&& visit) const {
    if (!is_waiting()) return;
    for (std::size_t i = schedule_.begin(round_); i < schedule_.end(round_); ++i)
      if (!has_come(i)) visit(schedule_.from(i));
  }
  /// Calls `visit(peer)` for all members that may be missing: the awaited ones, and those whose calls they forward.
  template <class Visit>
  void for_each_missing(Visit&& visit) const {
    if (!hears_indirectly()) return for_each_awaited(visit);
    for (std::size_t i = schedule_.begin(round_); i < schedule_.end(round_); ++i)
      for (std::size_t below = 0; !has_come(i) && below < schedule_.speaks_for(i); ++below)
        visit((schedule_.from(i) + schedule_.members() - below) % schedule_.members());
  }
  /// Returns a received call that differs from this member's call.
  [[nodiscard]] std::optional<BroughtCall> find_different() const {
    if (state_ != State::exchanging) return std::nullopt;
    CallSummary known = current_.calls;
    for (std::size_t i = schedule_.begin(round_); i < schedule_.end(round_); ++i)
      if (has_come(i)) known.join(received_[i].calls);
    const BroughtCall* const found = known.find_different(mine_.fingerprint);
    return found == nullptr ? std::nullopt : std::optional{*found};
  }

 private:
  /// One step of settling failures; true if another step may be possible.
  template <class Send>
  bool settle(Send&& send) {
    if (board_.unsettled() == 0) {
      if (const std::optional<NoticeFrom> closed = board_.find_closed())
        fail(*closed);
      else
        enter(send);
      return true;
    }
    const std::uint64_t number = 2 * board_.unsettled() + 1;
    if (number_ != number) {
      number_ = current_.number = number;
      current_.furthest = board_.furthest();
      round_ = 0;
      ++stage_;
    }
    if (round_ < schedule_.rounds()) {
      if (!round_has_come()) return false;
      for (std::size_t i = schedule_.begin(round_); i < schedule_.end(round_); ++i)
        if (received_[i].furthest.distance > current_.furthest.distance) current_.furthest = received_[i].furthest;
      ++stage_;
      if (++round_ < schedule_.rounds()) send_round(send, current_, round_);
      return true;
    }
    if (!board_.knows(current_.furthest)) return false;  // its notice has not arrived yet
    board_.settle();
    return true;
  }
  /// One step of exchanging calls; true if another step may be possible.
  template <class Send>
  bool exchange(Send&& send) {
    if (board_.skips()) {
      tell_failures(send);
      go_to(State::settling);
      return true;
    }
    if (!round_has_come()) return false;
    for (std::size_t i = schedule_.begin(round_); i < schedule_.end(round_); ++i)
      current_.calls.join(received_[i].calls);
    ++stage_;
    if (++round_ < schedule_.rounds())
      send_round(send, current_, round_);
    else
      compare();
    return true;
  }

  template <class Send>
  void enter(Send&& send) {
    if (const std::optional<NoticeFrom> known = board_.enter()) {
      tell_failures(send);
      return fail(*known);
    }
    if (board_.skips()) return tell_failures(send);  // this failure has to be settled, too
    go_to(State::exchanging);
    round_ = 0;
    call_.place = board_.place().mark();
    if (mine_.fingerprint != call_.fingerprint()) mine_ = CollectiveCallRecord{call_};
    number_ = current_.number = 2 * board_.sequence();
    current_.calls.first = {rank_, mine_};
    current_.calls.differ = 0;
    send_round(send, current_, 0);
  }
  template <class Send>
  void send_round(Send&& send, const Message& message, std::size_t round) const {
    for (std::size_t i = schedule_.begin(round); i < schedule_.end(round); ++i) send(i, message);
  }
  /// Messages for later collectives are kept: a notice that explains their senders' absence here will arrive.
  [[nodiscard]] bool has_come(std::size_t partner) const noexcept { return received_[partner].number == number_; }
  [[nodiscard]] bool round_has_come() const noexcept {
    for (std::size_t i = schedule_.begin(round_); i < schedule_.end(round_); ++i)
      if (!has_come(i)) return false;
    return true;
  }
  void compare() {
    const BroughtCall* const found = current_.calls.find_different(mine_.fingerprint);
    if (found == nullptr) {
      board_.succeed();
      go_to(State::met);
    } else {
      different_ = *found;
      board_.differ();
      go_to(State::different);
    }
  }
  void go_to(State state) noexcept {
    ++stage_;
    state_ = state;
  }
  void fail(const NoticeFrom& failure) {
    failure_ = failure;
    go_to(State::failed);
  }

  std::size_t rank_;
  NoticeBoard board_;
  Dissemination schedule_;
  State state_ = State::idle;
  std::uint64_t stage_ = 0;
  CollectiveCall call_;
  CollectiveCallRecord mine_;
  CollectiveCallRecord last_;  // previous common call
  std::uint64_t number_ = 0;   // of the awaited messages
  std::size_t round_ = 0;
  std::uint64_t told_ = 0;  // last collective whose failure was reported
  Message current_;         // this member's knowledge
  std::vector<Message> received_;
  NoticeFrom failure_;
  BroughtCall different_;
};

}  // namespace dist::detail
