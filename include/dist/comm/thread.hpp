#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <dist/comm/communicator.hpp>
#include <dist/comm/longest_wait.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/device/replica_threads.hpp>
#include <dist/device/wait.hpp>

namespace dist {

namespace detail {

/// Thrown in a replica that waits for a peer that has failed: it only unwinds the replica function, as the peer's own
/// exception is the one that the caller of `run` sees.
struct PeerFailed {};

}  // namespace detail

/// What the threads of one sync group share: for each two mailboxes used in turn. A member that has entered collective
/// n has left n - 1, so the mailbox of n - 1 is free for n + 1.
///
/// A mailbox starts with the number of the collective that it announces, a fingerprint of the call, and the first
/// bytes of what is exchanged, in one cache line: who waits for a peer gets all of it at once.
class ThreadGroup {
 public:
  /// `status` must outlive the group. A member that waits longer than `timeout` for a peer throws DeadlineExceeded;
  /// with 0 only a peer that fails or returns ends its wait. Throws InvalidArgument for a negative timeout.
  ThreadGroup(const RunStatus& status, detail::SpinBudget budget, std::chrono::nanoseconds timeout)
      : status_(status),
        budget_(budget),
        timeout_(detail::longest_wait(timeout)),
        members_(new Member[status.replicas()]) {}

  [[nodiscard]] std::size_t size() const noexcept { return status_.replicas(); }

  /// Forgets collectives that some members entered and others did not. Only while no run is going on.
  void reset() noexcept {
    for (std::size_t rank = 0; rank < size(); ++rank) {
      Member& member = members_[rank];
      member.entered.store(0, std::memory_order_relaxed);
      member.left.store(false, std::memory_order_relaxed);
      member.lent = false;
      for (Mailbox& mailbox : member.mailboxes) mailbox.sequence.store(0, std::memory_order_relaxed);
    }
  }

 private:
  friend class ThreadCommunicator;

  static constexpr std::size_t payload_capacity = 256;
  static constexpr std::size_t first_line = cache_line - 16;

  struct alignas(cache_line) Mailbox {
    std::atomic<std::uint32_t> sequence{0};  // of the collective that the rest belongs to
    std::uint64_t fingerprint;
    union alignas(16) {
      void* operands[2];
      std::byte payload[payload_capacity];
    };
    CollectiveCall call;  // read by peers only where fingerprints differ
  };
  struct alignas(cache_line) Member {
    Mailbox mailboxes[2];
    alignas(cache_line) std::atomic<std::uint32_t> entered{0};
    std::atomic<bool> left{false};  // its collective by an exception, and uses nobody's operands
    bool lent = false;              // the peers use the operands until this member's next collective
  };

  /// Announces that `rank` has entered collective `sequence` and returns when all have. `check(peer)` is called for
  /// each peer that has come.
  ///
  /// Either all members go on or none does, so that one that leaves by an exception leaves no peer behind that touches
  /// its operands. Who gives up takes its announcement back and looks once more whether the others have come; who has
  /// seen all come looks once more whether one has given up. The operations on `sequence` are sequentially consistent
  /// for that.
  template <class Check>
  void enter(std::size_t rank, std::uint32_t sequence, std::int64_t timeout, bool lends, std::size_t bytes,
             Check&& check) {
    Member& member = members_[rank];
    if (member.left.load(std::memory_order_relaxed)) member.left.store(false);  // it has caught its exception
    member.entered.store(sequence, std::memory_order_relaxed);
    announce(rank, sequence);
    await_return_of_operands(rank, sequence);
    member.lent = lends;
    do {
      for (std::size_t peer = 0; peer < size(); ++peer) {
        if (peer == rank) continue;
        await(rank, peer, sequence, timeout, bytes);
        check(peer);
      }
    } while (!peers_arrived(rank, sequence));
  }

  void announce(std::size_t rank, std::uint32_t sequence) {
    mailbox(rank, sequence).sequence.store(sequence);
    arrivals_.notify([&] { return peers_arrived(rank, sequence); });
  }

  [[nodiscard]] bool arrived(std::size_t peer, std::uint32_t sequence) const noexcept {
    return static_cast<std::int32_t>(mailbox(peer, sequence).sequence.load() - sequence) >= 0;
  }
  [[nodiscard]] bool peers_arrived(std::size_t rank, std::uint32_t sequence) const noexcept {
    for (std::size_t peer = 0; peer < size(); ++peer)
      if (peer != rank && !arrived(peer, sequence)) return false;
    return true;
  }
  [[nodiscard]] bool arrives_soon(std::size_t peer, std::uint32_t sequence, std::size_t bytes = 0) const noexcept {
    constexpr unsigned eager = 100;  // looks without a pause, which takes longer than a peer on its own core needs
    const std::byte* const payload = mailbox(peer, sequence).payload;
    for (unsigned spin = 0; spin < budget_.spins; ++spin) {
      // The rest of the payload arrives together with the line that announces it.
      for (std::size_t at = first_line; at < bytes; at += cache_line) __builtin_prefetch(payload + at);
      if (arrived(peer, sequence)) return true;
      if (spin >= eager) detail::relax();
    }
    for (unsigned yield = 0; yield < budget_.yields; ++yield) {
      if (arrived(peer, sequence)) return true;
      sched_yield();
    }
    return false;
  }
  /// Sleeps until all peers have come; at most a millisecond, as nobody reports that a peer has failed, left or
  /// returned.
  void rest(std::size_t rank, std::uint32_t sequence) noexcept {
    constexpr std::int64_t longest = 1'000'000;
    arrivals_.wait([&] { return peers_arrived(rank, sequence); }, longest);
  }

  /// Waits until `peer` has entered collective `sequence`, at most `timeout` nanoseconds.
  void await(std::size_t rank, std::size_t peer, std::uint32_t sequence, std::int64_t timeout, std::size_t bytes) {
    if (arrives_soon(peer, sequence, bytes)) return;
    const std::int64_t start = detail::monotonic_nanoseconds();
    while (!arrived(peer, sequence)) {
      // A peer may have come just before it returned: hence the second look.
      if (status_.failed())
        give_up(rank, sequence, [] { throw detail::PeerFailed{}; });
      else if (status_.has_returned(peer) && !arrived(peer, sequence))
        give_up(rank, sequence, [&] { refuse_missing(rank, peer, sequence); });
      else if (detail::monotonic_nanoseconds() - start > timeout)
        give_up(rank, sequence, [&] { refuse_late(rank, peer, sequence, timeout); });
      rest(rank, sequence);
    }
  }

  /// Takes the announcement back and calls `refuse`, which throws; unless all have come in the meantime. One at a time,
  /// so that no member takes another's brief absence for its leaving.
  template <class Refuse>
  void give_up(std::size_t rank, std::uint32_t sequence, Refuse&& refuse) {
    const std::lock_guard one_at_a_time{giving_up_};
    mailbox(rank, sequence).sequence.store(sequence - 2);
    members_[rank].entered.store(sequence - 1, std::memory_order_relaxed);
    if (!peers_arrived(rank, sequence)) refuse();
    members_[rank].entered.store(sequence, std::memory_order_relaxed);
    announce(rank, sequence);
  }

  /// Waits until no peer uses the operands that `rank` has published for the collective before `sequence` any more: it
  /// has entered the next one, or left its own or its replica function. No deadline can end this wait, as the operands
  /// would go while they are used.
  void await_return_of_operands(std::size_t rank, std::uint32_t sequence) noexcept {
    bool& lent = members_[rank].lent;
    if (!lent) return;
    for (std::size_t peer = 0; peer < size(); ++peer)
      if (peer != rank && !arrives_soon(peer, sequence))
        while (!arrived(peer, sequence) && !members_[peer].left.load() && !status_.has_returned(peer))
          rest(rank, sequence);
    lent = false;
  }

  /// For a member that leaves the collective it is in by an exception.
  void leave(std::size_t rank) noexcept {
    members_[rank].left.store(true);
    await_return_of_operands(rank, entered(rank) + 1);
  }

  [[nodiscard]] const Mailbox& mailbox(std::size_t rank, std::uint32_t sequence) const noexcept {
    return members_[rank].mailboxes[sequence % 2];
  }
  [[nodiscard]] Mailbox& mailbox(std::size_t rank, std::uint32_t sequence) noexcept {
    return members_[rank].mailboxes[sequence % 2];
  }
  [[nodiscard]] std::uint32_t entered(std::size_t rank) const noexcept {
    return members_[rank].entered.load(std::memory_order_relaxed);
  }

  [[nodiscard]] std::string describe(std::size_t rank, std::uint32_t sequence) const {
    return text("replica ", status_.id(rank), " called ", dist::describe(mailbox(rank, sequence).call), " as step ",
                sequence, " of its collectives");
  }
  [[noreturn]] void refuse_missing(std::size_t rank, std::size_t peer, std::uint32_t sequence) const {
    throw CollectiveMismatch(
        "The replicas did not issue the same collectives",
        text(describe(rank, sequence), ", but replica ", status_.id(peer), " returned after ", entered(peer)),
        "Call collectives on every replica, not under a condition that only some fulfil");
  }
  [[noreturn]] void refuse_different(std::size_t rank, std::size_t peer, std::uint32_t sequence) const {
    throw detail::different_calls("replica", mailbox(rank, sequence).call, describe(rank, sequence),
                                  mailbox(peer, sequence).call, describe(peer, sequence));
  }
  [[noreturn]] void refuse_late(std::size_t rank, std::size_t peer, std::uint32_t sequence,
                                std::int64_t timeout) const {
    throw DeadlineExceeded(text("Replica ", status_.id(peer), " did not come to a collective in time"),
                           text(describe(rank, sequence), " and waited ", static_cast<double>(timeout) * 1e-9, " s"),
                           "Find out what that replica waits for, or give the strategy a longer timeout");
  }

  const RunStatus& status_;
  detail::SpinBudget budget_;
  std::int64_t timeout_;
  std::mutex giving_up_;
  std::unique_ptr<Member[]> members_;
  alignas(cache_line) detail::EventCount arrivals_;
};

/// One thread's membership of a ThreadGroup. Every call is checked against the peers' calls, so replicas that disagree
/// get a CollectiveMismatch that names both sides instead of garbage or a hang.
class ThreadCommunicator {
 public:
  static constexpr std::size_t exchange_capacity = ThreadGroup::payload_capacity;

  ThreadCommunicator(ThreadGroup& group, std::size_t rank) : group_(&group), rank_(rank), timeout_(group.timeout_) {}

  /// The same membership, which waits longer or shorter than the group does (spec H13). Throws InvalidArgument for a
  /// negative timeout.
  [[nodiscard]] ThreadCommunicator with_timeout(std::chrono::nanoseconds timeout) const {
    ThreadCommunicator changed = *this;
    changed.timeout_ = detail::longest_wait(timeout);
    return changed;
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return group_->size(); }

  void barrier() const {
    meet({.operation = "barrier"}, false, 0, [](ThreadGroup::Mailbox&) {});
  }

  template <class T>
  void publish(const CollectiveCall& call, T* first, T* second = nullptr) const {
    meet(call, true, 0, [&](ThreadGroup::Mailbox& mine) {
      mine.operands[0] = first;
      mine.operands[1] = second;
    });
  }
  template <class T>
  [[nodiscard]] T* peer(std::size_t rank, int which) const noexcept {
    return static_cast<T*>(group_->mailbox(rank, group_->entered(rank_)).operands[which]);
  }

  /// Waits until no peer uses the operands that this member has published: for one that leaves by an exception.
  void reclaim() const noexcept { group_->leave(rank_); }

  template <class T>
  void exchange(const CollectiveCall& call, std::span<const T> values) const {
    DIST_EXPECT(values.size_bytes() <= exchange_capacity);
    meet(call, false, values.size_bytes(), [&](ThreadGroup::Mailbox& mine) {
      if (!values.empty()) std::memcpy(mine.payload, values.data(), values.size_bytes());
    });
  }
  template <class T>
  [[nodiscard]] const T* received(std::size_t rank) const noexcept {
    return reinterpret_cast<const T*>(group_->mailbox(rank, group_->entered(rank_)).payload);
  }

 private:
  /// Enters the next collective: fills this member's mailbox, announces it, waits for every peer to do the same.
  template <class Fill>
  void meet(const CollectiveCall& call, bool lends, std::size_t bytes, Fill&& fill) const {
    const std::uint32_t sequence = group_->entered(rank_) + 1;
    ThreadGroup::Mailbox& mine = group_->mailbox(rank_, sequence);
    const std::uint64_t fingerprint = call.fingerprint();
    mine.call = call;
    mine.fingerprint = fingerprint;
    fill(mine);
    try {
      group_->enter(rank_, sequence, timeout_, lends, bytes, [&](std::size_t peer) {
        const ThreadGroup::Mailbox& theirs = group_->mailbox(peer, sequence);
        if (theirs.fingerprint != fingerprint && theirs.call != call) group_->refuse_different(rank_, peer, sequence);
      });
    } catch (...) {
      group_->members_[rank_].lent = false;  // either all members go on or none does: no peer uses the operands
      throw;
    }
  }

  ThreadGroup* group_;
  std::size_t rank_;
  std::int64_t timeout_;
};

static_assert(SharesMemory<ThreadCommunicator> && ExchangesSmall<ThreadCommunicator>);

}  // namespace dist
