#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/messages/dissemination.hpp>
#include <dist/comm/notice_board.hpp>
#include <dist/core/algorithms.hpp>

namespace dist::detail {

/// The call that a member brings to a collective.
struct BroughtCall {
  std::uint64_t rank = 0;
  CollectiveCallRecord call;
};

/// What is left to know of the calls that some members brought: whether they are the same, and if not, which ones are
/// not. Joining is commutative, associative, and idempotent, so that summaries can be passed on in any order.
struct CallSummary {
  BroughtCall first;         ///< of the lowest rank
  std::uint64_t differ = 0;  ///< whether there is another one
  BroughtCall other;         ///< of the lowest rank among those that differ from the first

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

  /// The call of the lowest rank that differs from that with this fingerprint, which is a part of the summary.
  [[nodiscard]] const BroughtCall* find_different(std::uint64_t fingerprint) const noexcept {
    if (first.call.fingerprint != fingerprint) return &first;
    return differ != 0 ? &other : nullptr;
  }
  /// How many bytes of the summary have a meaning.
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

/// How one member of a group agrees with the others, by messages, on the call that they make together. It is all of the
/// protocol but sending, receiving and waiting, which belong to the caller: `begin(call)`, then `advance` whenever
/// something has come, until the state says how it ended.
///
/// Calls travel by dissemination (`Dissemination`): a member sends and receives O(log P) messages for a collective.
/// Every member hears of every call, directly or not, so none gets through before all have come.
///
/// A member that fails instead tells all others itself, at once, because those that would pass it on may be computing,
/// and waits for nobody. Others may have failed at the same collective, in other runs. So the next call begins with
/// another dissemination, of the failure that closes most runs: members that go on know the same.
class CallAgreement {
 public:
  struct Message {
    std::uint64_t number = 0;  ///< twice that of the collective, and one more where the message is about its failures
    NoticeBoard::Failure furthest;
    CallSummary calls;

    [[nodiscard]] bool settles() const noexcept { return number % 2 == 1; }
    /// How many bytes have a meaning.
    [[nodiscard]] std::size_t bytes() const noexcept {
      return offsetof(Message, calls) + (settles() ? 0 : calls.bytes());
    }
  };
  enum class State : unsigned char {
    settling,    ///< waits for what others know about the failures in a collective
    exchanging,  ///< waits for the calls of others
    met,         ///< all make the same call
    different,   ///< all have come with calls that are not all the same: `different_call()`
    failed,      ///< `failure()` is to be thrown
    idle         ///< there is no meeting
  };

  CallAgreement(std::size_t rank, std::size_t members)
      : rank_(rank), board_(rank, members), schedule_(rank, members), received_(schedule_.partners()) {}

  [[nodiscard]] NoticeBoard& board() noexcept { return board_; }
  [[nodiscard]] const NoticeBoard& board() const noexcept { return board_; }
  [[nodiscard]] const Dissemination& schedule() const noexcept { return schedule_; }

  /// This member makes `call`, of which only the names must stay until the end of the meeting.
  void begin(const CollectiveCall& call) {
    call_ = call;
    last_ = mine_;
    board_.begin_meeting();
    if (const std::optional<NoticeFrom> closed = board_.find_closed())
      fail(*closed);
    else
      go_to(State::settling);
  }
  /// Goes as far as what has come allows: calls `send(partner, message)` for the messages that are to be sent.
  template <class Send>
  void advance(Send&& send) {
    tell_failures(send);
    while (state_ == State::settling || state_ == State::exchanging) {
      const bool goes_on = state_ == State::settling ? settle(send) : exchange(send);
      if (!goes_on) return;
    }
  }
  /// Sends the first messages about collectives that failed; as soon as this member knows, so that others need not wait
  /// for its next call.
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
  /// Whether something has to come before it is over.
  [[nodiscard]] bool is_waiting() const noexcept { return state_ <= State::exchanging; }
  /// Changes with all that this member waits for.
  [[nodiscard]] std::uint64_t stage() const noexcept { return stage_; }
  /// After the last state, or an exception.
  void end() noexcept {
    board_.end_meeting();
    state_ = State::idle;
  }

  [[nodiscard]] const NoticeFrom& failure() const noexcept { return failure_; }
  [[nodiscard]] const BroughtCall& different_call() const noexcept { return different_; }

  /// This member fails instead of coming to the next collective. Returns what its peers are told.
  [[nodiscard]] Notice cancel(const FailureNotice& failure) {
    mine_ = CollectiveCallRecord{{.operation = "a failure"}};
    return board_.cancel(failure);
  }
  /// Whether the next message of this partner is wanted: the last one is of an earlier collective.
  [[nodiscard]] bool wants(std::size_t partner) const noexcept { return received_[partner].number < number_; }
  /// The number of the messages that this member waits for.
  [[nodiscard]] std::uint64_t awaits() const noexcept { return number_; }
  void receive(std::size_t partner, const Message& message) noexcept { received_[partner] = message; }

  /// This member's call, and the one before, for messages.
  [[nodiscard]] const CollectiveCallRecord& mine() const noexcept { return mine_; }
  [[nodiscard]] const CollectiveCallRecord& last() const noexcept { return last_; }

  /// Whether this member waits for partners that speak for more than themselves.
  [[nodiscard]] bool hears_indirectly() const noexcept { return is_waiting() && round_ != 0; }
  /// Calls `visit(peer)` for each one that this member waits for.
  template <class Visit>
  void for_each_awaited(Visit&& visit) const {
    if (!is_waiting()) return;
    for (std::size_t i = schedule_.begin(round_); i < schedule_.end(round_); ++i)
      if (!has_come(i)) visit(schedule_.from(i));
  }
  /// The same for those that may not have come: the awaited ones and those that they speak for.
  template <class Visit>
  void for_each_missing(Visit&& visit) const {
    if (!hears_indirectly()) return for_each_awaited(visit);
    for (std::size_t i = schedule_.begin(round_); i < schedule_.end(round_); ++i)
      for (std::size_t below = 0; !has_come(i) && below < schedule_.speaks_for(i); ++below)
        visit((schedule_.from(i) + schedule_.members() - below) % schedule_.members());
  }
  /// A call, of those that have come until now, which is not the same as this member's.
  [[nodiscard]] std::optional<BroughtCall> find_different() const {
    if (state_ != State::exchanging) return std::nullopt;
    CallSummary known = current_.calls;
    for (std::size_t i = schedule_.begin(round_); i < schedule_.end(round_); ++i)
      if (has_come(i)) known.join(received_[i].calls);
    const BroughtCall* const found = known.find_different(mine_.fingerprint);
    return found == nullptr ? std::nullopt : std::optional{*found};
  }

 private:
  /// One step of settling; returns whether there may be another one.
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
    if (!board_.knows(current_.furthest)) return false;  // its notice is on its way
    board_.settle();
    return true;
  }
  /// The same of the exchange of calls.
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
    if (board_.skips()) return tell_failures(send);  // and settles that, too
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
  /// A later message stays until this member gets there: the notice why its sender is missing here is on its way.
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
  CollectiveCallRecord last_;  // what all members called before
  std::uint64_t number_ = 0;   // of the messages that this member waits for
  std::size_t round_ = 0;
  std::uint64_t told_ = 0;  // the last collective of which it has told that it failed
  Message current_;         // what this member knows
  std::vector<Message> received_;
  NoticeFrom failure_;
  BroughtCall different_;
};

}  // namespace dist::detail
