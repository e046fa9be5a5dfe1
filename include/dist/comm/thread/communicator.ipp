#pragma once

#include <dist/comm/health/timeout.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/core/text.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist {

DIST_INLINE ThreadGroup::ThreadGroup(const RunStatus& status, detail::SpinBudget budget,
                                     std::chrono::nanoseconds timeout)
    : status_(status),
      timeout_(detail::longest_wait(timeout)),
      members_(new Member[status.replicas()]),
      boxes_({members_.get(), status.replicas(), &arrivals_}, budget) {
  ReportSignal::answer_to_the_end();
}

DIST_INLINE void ThreadGroup::reset() noexcept {
  if (!disturbed_.load(std::memory_order_relaxed)) return;
  disturbed_.store(false, std::memory_order_relaxed);
  for (std::size_t rank = 0; rank < size(); ++rank) {
    Member& member = members_[rank];
    member.entered.store(0, std::memory_order_relaxed);
    member.left.store(false, std::memory_order_relaxed);
    member.lent = false;
    member.ahead = false;
    member.all_threw = 0;
    member.structure = 0;
    for (Mailbox& mailbox : member.mailboxes) {
      mailbox.sequence.store(0, std::memory_order_relaxed);
      mailbox.why = nullptr;
    }
  }
}

DIST_COLD void ThreadGroup::fail(std::size_t rank, std::uint32_t sequence, const std::exception_ptr& why) {
  note_failure(rank, sequence, why);
  boxes_.announce_failure(rank, sequence);
}

DIST_COLD void ThreadGroup::note_failure(std::size_t rank, std::uint32_t sequence, const std::exception_ptr& why) {
  Member& member = members_[rank];
  mailbox(rank, sequence).fingerprint = boxes_.failure;
  mailbox(rank, sequence).why = why;
  member.ahead = true;
  member.entered.store(sequence, std::memory_order_relaxed);
  disturbed_.store(true, std::memory_order_relaxed);
  status_.blame(rank, why);
}

DIST_COLD void ThreadGroup::catch_up(std::size_t rank, std::int64_t timeout) {
  Member& member = members_[rank];
  if (member.left.load(std::memory_order_relaxed)) {
    skip_next(rank, std::make_exception_ptr(CollectiveMismatch(
                        "The replicas did not issue the same collectives",
                        concat(describe(rank, entered(rank)), ", left it with an exception, and continues"),
                        "Let exceptions of updates and other functions that collectives call end the run")));
  }
  // Until all have arrived, peers may read the mailbox that this member is about to fill.
  for (std::size_t peer = 0; peer < size(); ++peer) {
    if (peer == rank) continue;
    detail::MailboxWait wait{timeout};
    while (!boxes_.arrives_soon(peer, entered(rank), wait) && !status_.has_returned(peer)) {
      if (status_.failed()) throw detail::PeerFailed{};
      if (wait.is_over()) throw late(rank, peer, entered(rank), timeout);
      boxes_.rest(rank, entered(rank));
    }
  }
  member.ahead = false;
}

DIST_COLD void ThreadGroup::skip_next(std::size_t rank, const std::exception_ptr& why) {
  fail(rank, entered(rank) + 1, why);
  members_[rank].left.store(false);
}

DIST_COLD void ThreadGroup::cancel(std::size_t rank, const std::exception_ptr& why) noexcept {
  const Member& member = members_[rank];
  if (size() == 1 || member.ahead || (entered(rank) != 0 && member.all_threw == entered(rank))) return;
  skip_next(rank, why);
}

template <class MakeError>
[[gnu::cold]] void ThreadGroup::fail_unless_all_came(std::size_t rank, std::uint32_t sequence, MakeError&& error) {
  const std::lock_guard one_at_a_time{giving_up_};
  std::exception_ptr why;
  const bool gave_up = boxes_.fail_unless_all_came(rank, sequence, [&] {
    why = std::make_exception_ptr(error());
    note_failure(rank, sequence, why);
  });
  if (gave_up) std::rethrow_exception(why);
}

DIST_COLD void ThreadGroup::await_slowly(std::size_t rank, std::size_t peer, std::uint32_t sequence,
                                         std::int64_t timeout, const detail::MailboxWait& wait) {
  SlowWait slow;
  boxes_.await_slowly(rank, peer, sequence, [&] {
    // Check again: a peer may have arrived just before it returned.
    if (status_.failed())
      fail_unless_all_came(rank, sequence, [] { return detail::PeerFailed{}; });
    else if (status_.has_returned(peer) && !boxes_.arrived(peer, sequence))
      fail_unless_all_came(rank, sequence, [&] { return missing(rank, peer, sequence); });
    else if (wait.is_over())
      fail_unless_all_came(rank, sequence, [&] { return late(rank, peer, sequence, timeout); });
    slow.note([&] { return concat("for replica ", status_.id(peer), ": ", describe(rank, sequence)); });
  });
}

DIST_INLINE void ThreadGroup::await_return_of_operands(std::size_t rank, std::uint32_t sequence,
                                                       std::int64_t timeout) noexcept {
  for (std::size_t peer = 0; peer < size(); ++peer) {
    if (peer == rank) continue;
    detail::MailboxWait wait{timeout};
    if (boxes_.arrives_soon(peer, sequence, wait)) continue;
    SlowWait slow;
    while (!boxes_.arrived(peer, sequence) && !members_[peer].left.load() && !status_.has_returned(peer)) {
      if (wait.is_over(grace)) end_process(rank, peer, sequence - 1, timeout);
      slow.note([&] {
        // This member's record of the call: the peer may overwrite its own when it continues.
        return concat("for replica ", status_.id(peer), ", which uses operands of replica ", status_.id(rank), ": ",
                      describe(rank, sequence - 1));
      });
      boxes_.rest(rank, sequence);
    }
  }
  members_[rank].lent = false;
}

DIST_INLINE void ThreadGroup::leave(std::size_t rank, std::int64_t timeout) noexcept {
  Member& member = members_[rank];
  if (!member.lent) return;  // no peer uses its operands
  if (size() == 1) {
    member.lent = false;
    return;
  }
  disturbed_.store(true, std::memory_order_relaxed);
  member.left.store(true);
  await_return_of_operands(rank, entered(rank) + 1, timeout);
}

DIST_COLD std::string ThreadGroup::describe(std::size_t rank, std::uint32_t sequence) const {
  return concat("replica ", status_.id(rank), " called ", dist::describe(mailbox(rank, sequence).call), " as step ",
                sequence, " of its collectives");
}

DIST_COLD CollectiveMismatch ThreadGroup::missing(std::size_t rank, std::size_t peer, std::uint32_t sequence) const {
  return {"The replicas did not issue the same collectives",
          concat(describe(rank, sequence), ", but replica ", status_.id(peer), " returned after step ", entered(peer)),
          "Call collectives on every replica, not under a condition that only some replicas fulfil"};
}

DIST_COLD DeadlineExceeded ThreadGroup::late(std::size_t rank, std::size_t peer, std::uint32_t sequence,
                                             std::int64_t timeout) const {
  return {concat("Replica ", status_.id(peer), " did not reach a collective in time"),
          concat(describe(rank, sequence), " and waited ", std::chrono::nanoseconds{timeout}),
          "Find out what that replica waits for, or give the strategy a longer timeout"};
}

DIST_COLD void ThreadGroup::refuse(std::size_t rank, std::uint32_t sequence) {
  disturbed_.store(true, std::memory_order_relaxed);
  members_[rank].all_threw = sequence;
  const Mailbox& mine = mailbox(rank, sequence);
  std::size_t other = rank;
  for (std::size_t peer = 0; peer < size(); ++peer) {
    if (mailbox(peer, sequence).fingerprint == boxes_.failure) std::rethrow_exception(mailbox(peer, sequence).why);
    if (other == rank && mailbox(peer, sequence).fingerprint != mine.fingerprint) other = peer;
  }
  throw detail::different_calls("replica", mine.call, describe(rank, sequence), mailbox(other, sequence).call,
                                describe(other, sequence));
}

DIST_COLD void ThreadGroup::end_process(std::size_t rank, std::size_t peer, std::uint32_t sequence,
                                        std::int64_t timeout) const noexcept {
  detail::end_process(
      "a collective",
      DeadlineExceeded(
          concat("Replica ", status_.id(peer), " did not release the operands of a collective in time"),
          concat(describe(peer, sequence), " and still uses operands of replica ", status_.id(rank), ", which waited ",
                 std::chrono::nanoseconds{timeout}, " and cannot continue while they are used"),
          "Find out what the update or function that this collective calls waits for, or give the "
          "strategy a longer timeout"),
      detail::exit_late, [] {});
}

}  // namespace dist
