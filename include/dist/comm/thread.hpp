#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <dist/comm/communicator.hpp>
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

/// What the threads of one sync group share: for each a sequence number of the collectives it has entered, and two
/// mailboxes used in turn. A member that has entered collective n has left n - 1, so the mailbox of n - 1 is free for n + 1.
class ThreadGroup {
 public:
  /// `status` must outlive the group. A member that waits longer than `timeout` for a peer throws DeadlineExceeded.
  ThreadGroup(const RunStatus& status, detail::SpinBudget budget, std::chrono::nanoseconds timeout)
      : status_(status), budget_(budget), timeout_(timeout.count()), members_(new Member[status.replicas()]) {}

  [[nodiscard]] std::size_t size() const noexcept { return status_.replicas(); }

  /// Forgets collectives that some members entered and others did not. Only while no run is going on.
  void reset() noexcept {
    for (std::size_t rank = 0; rank < size(); ++rank) members_[rank].entered.store(0, std::memory_order_relaxed);
  }

 private:
  friend class ThreadCommunicator;

  static constexpr std::size_t payload_capacity = 256;

  struct Mailbox {
    CollectiveCall call;
    void* operands[2];
    alignas(cache_line) std::byte payload[payload_capacity];
  };
  struct alignas(cache_line) Member {
    std::atomic<std::uint32_t> entered{0};
    alignas(cache_line) Mailbox mailboxes[2];
  };

  /// Waits until `peer` has entered collective `sequence`.
  void await(std::size_t rank, std::size_t peer, std::uint32_t sequence) const {
    const auto& entered = members_[peer].entered;
    const auto arrived = [&] {
      return static_cast<std::int32_t>(entered.load(std::memory_order_acquire) - sequence) >= 0;
    };
    for (unsigned spin = 0; spin < budget_.spins; ++spin) {
      if (arrived()) return;
      detail::relax();
    }
    const std::int64_t start = detail::monotonic_nanoseconds();
    for (;;) {
      if (arrived()) return;
      if (status_.failed()) {
        withdraw(rank, sequence);
        throw detail::PeerFailed{};
      }
      if (status_.has_returned(peer) && !arrived()) refuse_missing(rank, peer);
      if (detail::monotonic_nanoseconds() - start > timeout_) {
        const DeadlineExceeded late = late_peer(rank, peer);
        withdraw(rank, sequence);
        throw late;
      }
      sched_yield();
    }
  }

  /// Takes back that `rank` has entered collective `sequence`: it gives up, its operands are about to go, and a peer that
  /// comes later must not take them for published.
  void withdraw(std::size_t rank, std::uint32_t sequence) const noexcept {
    members_[rank].entered.store(sequence - 1, std::memory_order_release);
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

  [[nodiscard]] std::string describe(std::size_t rank) const {
    const std::uint32_t sequence = entered(rank);
    const CollectiveCall& call = mailbox(rank, sequence).call;
    std::string line = text("replica ", rank, " called ", call.operation);
    if (!call.reduction.empty()) line += text("(", call.reduction, ")");
    if (!call.dtype.empty()) line += text(" of ", call.elements, " ", call.dtype);
    if (call.operation == "broadcast") line += text(" from replica ", call.root);
    return line + text(" as its collective number ", sequence);
  }
  [[noreturn]] void refuse_missing(std::size_t rank, std::size_t peer) const {
    throw CollectiveMismatch("The replicas did not issue the same collectives",
                             text(describe(rank), ", but replica ", peer, " returned after ", entered(peer)),
                             "Call collectives on every replica, not under a condition that only some fulfil");
  }
  [[noreturn]] void refuse_different(std::size_t rank, std::size_t peer) const {
    throw CollectiveMismatch("The replicas did not issue the same collectives",
                             text(describe(rank), ", but ", describe(peer)),
                             "Call the same collectives with the same extents in the same order on every replica");
  }
  [[nodiscard]] DeadlineExceeded late_peer(std::size_t rank, std::size_t peer) const {
    return DeadlineExceeded(text("Replica ", peer, " did not come to a collective in time"),
                            text(describe(rank), " and waited ", static_cast<double>(timeout_) * 1e-9, " s"),
                            "Find out what that replica waits for, or give the strategy a longer timeout");
  }

  const RunStatus& status_;
  detail::SpinBudget budget_;
  std::int64_t timeout_;
  std::unique_ptr<Member[]> members_;
};

/// One thread's membership of a ThreadGroup. Every call is checked against the peers' calls, so replicas that disagree get
/// a CollectiveMismatch that names both sides instead of garbage or a hang.
class ThreadCommunicator {
 public:
  static constexpr std::size_t exchange_capacity = ThreadGroup::payload_capacity;

  ThreadCommunicator(ThreadGroup& group, std::size_t rank) : group_(&group), rank_(rank) {}

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return group_->size(); }

  void barrier() const {
    meet({.operation = "barrier"}, [](ThreadGroup::Mailbox&) {});
  }

  template <class T>
  void publish(const CollectiveCall& call, T* first, T* second = nullptr) const {
    meet(call, [&](ThreadGroup::Mailbox& mine) {
      mine.operands[0] = first;
      mine.operands[1] = second;
    });
  }
  template <class T>
  [[nodiscard]] T* peer(std::size_t rank, int which) const noexcept {
    return static_cast<T*>(group_->mailbox(rank, group_->entered(rank_)).operands[which]);
  }

  template <class T>
  void exchange(const CollectiveCall& call, std::span<const T> values) const {
    DIST_EXPECT(values.size_bytes() <= exchange_capacity);
    meet(call, [&](ThreadGroup::Mailbox& mine) {
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
  void meet(const CollectiveCall& call, Fill&& fill) const {
    const std::uint32_t sequence = group_->entered(rank_) + 1;
    ThreadGroup::Mailbox& mine = group_->mailbox(rank_, sequence);
    mine.call = call;
    fill(mine);
    group_->members_[rank_].entered.store(sequence, std::memory_order_release);
    for (std::size_t peer = 0; peer < size(); ++peer) {
      if (peer == rank_) continue;
      group_->await(rank_, peer, sequence);
      if (group_->mailbox(peer, sequence).call != call) group_->refuse_different(rank_, peer);
    }
  }

  ThreadGroup* group_;
  std::size_t rank_;
};

static_assert(SharesMemory<ThreadCommunicator> && ExchangesSmall<ThreadCommunicator>);

}  // namespace dist
