#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>
#include <string>

#include <dist/comm/communicator.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/mailboxes.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/replica_threads.hpp>
#include <dist/device/wait.hpp>

namespace dist {

/// What the threads of one sync group share: the mailboxes of all (detail::Mailboxes).
///
/// A call that succeeds only writes its own mailbox. What a member itself needs of it is also kept elsewhere, because a
/// line that a peer has read takes as long to read as one that a peer has written.
///
/// To each collective every member brings either its call or the failure that keeps it from making one. A member looks
/// at what the others brought when all of it is there, so that all of them see the same: either all do the collective,
/// or all throw, and are in step for the next one.
class ThreadGroup {
 public:
  /// `status` must outlive the group. A member that waits longer than `timeout` for a peer throws DeadlineExceeded;
  /// with 0 only a peer that fails or returns ends its wait. Throws InvalidArgument for a negative timeout.
  ThreadGroup(const RunStatus& status, detail::SpinBudget budget, std::chrono::nanoseconds timeout);

  [[nodiscard]] std::size_t size() const noexcept { return boxes_.size(); }

  /// Forgets what members did not do together in a run that was disturbed: by a disagreement, a failure, a member that
  /// returned early, also where replica functions caught the error. Only while no run is going on.
  void reset() noexcept;

 private:
  friend class ThreadCommunicator;

  static constexpr std::size_t payload_capacity = 256;
  /// A peer may use operands longer than the timeout by so many nanoseconds: what follows ends the process.
  static constexpr std::int64_t grace = 3'000'000'000;

  /// What a member brings to a collective: where its operands are, or a few values.
  union alignas(16) Content {
    Operand lent{};
    std::byte payload[payload_capacity];
  };
  struct alignas(cache_line) Mailbox {
    std::atomic<std::uint32_t> sequence{0};
    std::uint64_t fingerprint;
    Content content;
    CollectiveCall call;     // read by peers only where fingerprints differ
    std::exception_ptr why;  // the member failed
  };
  struct alignas(cache_line) Member {
    Mailbox mailboxes[2];
    alignas(cache_line) std::atomic<std::uint32_t> entered{0};
    std::atomic<bool> left{false};  // its collective by an exception, and uses nobody's operands
    bool lent = false;              // the peers use the operands until this member's next collective
    bool ahead = false;             // it did not see all others come to its last collective
    std::uint32_t all_threw = 0;    // in this collective
    std::uint64_t structure = 0;    // of the values that its calls are a part of
    Content own;                    // what it brought last, for itself
  };

  /// Where they lie: a Medium of Mailboxes.
  struct Memory {
    static constexpr bool takes_back = true;

    Member* members;
    std::size_t count;
    detail::EventCount* calls;

    [[nodiscard]] std::size_t size() const noexcept { return count; }
    [[nodiscard]] Mailbox& mailbox(std::size_t rank, std::uint32_t parity) const noexcept {
      return members[rank].mailboxes[parity];
    }
    [[nodiscard]] detail::EventCount& arrivals() const noexcept { return *calls; }
  };

  /// Announces that `rank` has entered collective `sequence`, whose mailbox is filled, and returns when all have.
  ///
  /// Either all members go on or none does, so that one that leaves by an exception leaves no peer behind that touches
  /// its operands.
  void enter(std::size_t rank, std::uint32_t sequence, std::uint64_t fingerprint, std::int64_t timeout, bool lends,
             std::size_t bytes) {
    Member& member = members_[rank];
    member.entered.store(sequence, std::memory_order_relaxed);
    boxes_.announce(rank, sequence);
    if (member.lent) await_return_of_operands(rank, sequence, timeout);
    member.lent = lends;
    const bool same = boxes_.meet(
        rank, sequence, fingerprint, timeout, bytes,
        [&](std::size_t peer, const detail::MailboxWait& wait) { await_slowly(rank, peer, sequence, timeout, wait); },
        [](std::size_t) {});
    if (!same) [[unlikely]]
      refuse(rank, sequence);
  }

  /// Announces that `rank` does not make collective `sequence`, whose mailbox is free, and why.
  void fail(std::size_t rank, std::uint32_t sequence, const std::exception_ptr& why);

  void note_failure(std::size_t rank, std::uint32_t sequence, const std::exception_ptr& why);

  /// Before the next call of a member that left its last collective by an exception, or without having seen all come.
  void catch_up(std::size_t rank, std::int64_t timeout);
  void skip_next(std::size_t rank, const std::exception_ptr& why);
  /// For a member that has left a collective that takes more than this group, because of a failure elsewhere: the peers,
  /// which wait for it here, throw the same.
  void cancel(std::size_t rank, const std::exception_ptr& why) noexcept;

  /// Waits until `peer` has come to collective `sequence`, at most `timeout` nanoseconds.
  void await_slowly(std::size_t rank, std::size_t peer, std::uint32_t sequence, std::int64_t timeout,
                    const detail::MailboxWait& wait);

  /// Announces a failure, `error()`, instead of the call that was announced, and throws it; unless all have come in the
  /// meantime.
  template <class MakeError>
  void fail_unless_all_came(std::size_t rank, std::uint32_t sequence, MakeError&& error);

  /// Waits until no peer uses the operands that `rank` has published for the collective before `sequence` any more: it
  /// has come to the next one, or left its own or its replica function. The operands would go while they are used if an
  /// exception ended this wait, so a peer that keeps them for longer than `timeout` and some grace ends the process.
  void await_return_of_operands(std::size_t rank, std::uint32_t sequence, std::int64_t timeout) noexcept;

  /// Called by a member that leaves its collective by an exception.
  void leave(std::size_t rank, std::int64_t timeout) noexcept;

  [[nodiscard]] Mailbox& mailbox(std::size_t rank, std::uint32_t sequence) const noexcept {
    return boxes_.of(rank, sequence);
  }
  [[nodiscard]] std::uint32_t entered(std::size_t rank) const noexcept {
    return members_[rank].entered.load(std::memory_order_relaxed);
  }

  [[nodiscard]] std::string describe(std::size_t rank, std::uint32_t sequence) const;
  [[nodiscard]] CollectiveMismatch missing(std::size_t rank, std::size_t peer, std::uint32_t sequence) const;
  [[nodiscard]] DeadlineExceeded late(std::size_t rank, std::size_t peer, std::uint32_t sequence,
                                      std::int64_t timeout) const;
  /// All have come to a collective that not all can do: throws the first failure that one of them brought, else that
  /// their calls differ.
  [[noreturn]] void refuse(std::size_t rank, std::uint32_t sequence);
  [[noreturn]] void end_process(std::size_t rank, std::size_t peer, std::uint32_t sequence,
                                std::int64_t timeout) const noexcept;

  const RunStatus& status_;
  std::int64_t timeout_;
  std::mutex giving_up_;
  std::unique_ptr<Member[]> members_;
  detail::Mailboxes<Memory> boxes_;
  std::atomic<bool> disturbed_{false};
  alignas(cache_line) detail::EventCount arrivals_;
};

/// One thread's membership of a ThreadGroup. Every call is checked against the peers' calls, so replicas that disagree
/// get a CollectiveMismatch that names both sides instead of garbage or a hang: all of them, in the same collective, so
/// that those that catch it can go on together. So can those that catch any other error of a collective.
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

  DIST_ALWAYS_INLINE void barrier() const {
    meet({.operation = "barrier"}, false, 0, [](ThreadGroup::Content&) {});
  }

  DIST_ALWAYS_INLINE void publish(const CollectiveCall& call, const Operand& lent) const {
    meet(call, true, 0, [&](ThreadGroup::Content& content) { content.lent = lent; });
  }
  template <class T>
  [[nodiscard]] const T* peer(std::size_t rank) const noexcept {
    return static_cast<const T*>(lent_by(rank).read);
  }
  template <class T>
  [[nodiscard]] T* peer_to_write(std::size_t rank) const noexcept {
    DIST_EXPECT_INNER(lent_by(rank).write != nullptr || lent_by(rank).read == nullptr);
    return static_cast<T*>(lent_by(rank).write);
  }
  /// The operand that member `rank` published.
  [[nodiscard]] const Operand& lent_by(std::size_t rank) const noexcept { return announced_by(rank).lent; }

  /// Waits until no peer uses the operands that this member has published: for one that leaves by an exception.
  void cancel_operands() const noexcept { group_->leave(rank_, timeout_); }

  /// All members are threads of this process.
  [[nodiscard]] ThreadCommunicator local() const noexcept { return *this; }

  /// Lets the peers throw `why` in their next collective, to which this member does not come because of it; unless that
  /// is an error that all members have thrown.
  void cancel(const std::exception_ptr& why) const noexcept { group_->cancel(rank_, why); }
  /// A notice is for other processes.
  void cancel(const FailureNotice&) const noexcept {}
  /// A failure is told whenever it comes, and no deadline breaks the group.
  void begin_attempt() const noexcept {}
  [[nodiscard]] bool is_broken() const noexcept { return false; }

  /// This member's calls from here on are parts of a collective of values with this structure; 0: of none.
  void set_structure(std::uint64_t structure) const noexcept { group_->members_[rank_].structure = structure; }
  /// A run is that of all members.
  void begin_run(std::uint64_t) const noexcept {}
  void begin_alone() const noexcept {}
  void end_run() const noexcept {}
  void begin_call() const noexcept {}

  template <class T>
  DIST_ALWAYS_INLINE void exchange(const CollectiveCall& call, std::span<const T> values) const {
    DIST_EXPECT(values.size_bytes() <= exchange_capacity);
    meet(call, false, values.size_bytes(), [&](ThreadGroup::Content& content) {
      if (!values.empty()) std::memcpy(content.payload, values.data(), values.size_bytes());
    });
  }
  template <class T>
  [[nodiscard]] const T* received(std::size_t rank) const noexcept {
    return reinterpret_cast<const T*>(announced_by(rank).payload);
  }

 private:
  /// What member `rank` brought to this member's last collective.
  [[nodiscard]] const ThreadGroup::Content& announced_by(std::size_t rank) const noexcept {
    return rank == rank_ ? group_->members_[rank].own : group_->mailbox(rank, group_->entered(rank_)).content;
  }

  /// Enters the next collective: fills this member's mailbox, announces it, waits for every peer to do the same. Inlined,
  /// as its callers are, to where the names of the call are literals: their hashes are constants there.
  template <class Fill>
  DIST_ALWAYS_INLINE void meet(const CollectiveCall& call, bool lends, std::size_t bytes, Fill&& fill) const {
    ThreadGroup::Member& member = group_->members_[rank_];
    if (member.left.load(std::memory_order_relaxed) || member.ahead) [[unlikely]]
      group_->catch_up(rank_, timeout_);
    const std::uint32_t sequence = group_->entered(rank_) + 1;
    ThreadGroup::Mailbox& mine = group_->mailbox(rank_, sequence);
    const std::uint64_t fingerprint = call.fingerprint() + member.structure * CollectiveCall::structure_factor;
    mine.call = call;
    mine.call.structure = member.structure;
    fill(member.own);
    mine.fingerprint = fingerprint;
    fill(mine.content);
    try {
      group_->enter(rank_, sequence, fingerprint, timeout_, lends, bytes);
    } catch (...) {
      member.lent = false;  // either all members go on or none does: no peer uses the operands
      throw;
    }
  }

  ThreadGroup* group_;
  std::size_t rank_;
  std::int64_t timeout_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/thread/communicator.ipp>
#endif
