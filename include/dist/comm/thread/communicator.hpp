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

/// State shared by the threads of one sync group: the mailboxes of all members (detail::Mailboxes).
///
/// A successful call writes only the caller's own mailbox. Each member keeps a private copy of its contribution,
/// because cache lines that peers have read are slow to read.
///
/// Each member brings a call or a failure to every collective, and reads mailboxes only when all have arrived: either
/// all perform the collective or all throw, and all stay in step.
class ThreadGroup {
 public:
  /// `status` must outlive the group. A member that waits longer than `timeout` for a peer throws DeadlineExceeded;
  /// with 0, only a peer that fails or returns ends the wait. Throws InvalidArgument if `timeout` is negative.
  ThreadGroup(const RunStatus& status, detail::SpinBudget budget, std::chrono::nanoseconds timeout);

  /// The number of replicas.
  [[nodiscard]] std::size_t size() const noexcept { return boxes_.size(); }

  /// Clears collectives that members did not complete together because of a mismatch, a failure or an early return,
  /// even if replica functions caught the error. Not during a run.
  void reset() noexcept;

 private:
  friend class ThreadCommunicator;

  static constexpr std::size_t payload_capacity = 256;
  /// Nanoseconds from the timeout to the end of the process if a peer still uses operands.
  static constexpr std::int64_t grace = 3'000'000'000;

  /// The contribution of a member to a collective: its operands' addresses, or a few values.
  union alignas(16) Content {
    Operand lent{};
    std::byte payload[payload_capacity];
  };
  struct alignas(cache_line) Mailbox {
    std::atomic<std::uint32_t> sequence{0};
    std::uint64_t fingerprint;
    Content content;
    CollectiveCall call;     // read by peers only if fingerprints differ
    std::exception_ptr why;  // why the member failed
  };
  struct alignas(cache_line) Member {
    Mailbox mailboxes[2];
    alignas(cache_line) std::atomic<std::uint32_t> entered{0};
    std::atomic<bool> left{false};  // left its collective by an exception, and uses no operands of peers
    bool lent = false;              // peers use its operands until its next collective
    bool ahead = false;             // it did not see all peers arrive at its last collective
    std::uint32_t all_threw = 0;    // the last collective in which all members threw
    std::uint64_t structure = 0;    // of the values that its calls are parts of; 0: none
    Content own;                    // its last contribution, for its own use
  };

  /// Access to the mailboxes: the Medium of detail::Mailboxes.
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

  /// Announces that `rank` has entered collective `sequence` and filled its mailbox. Returns when all have entered.
  ///
  /// Either all members proceed or none does: no peer uses operands of a member that leaves by an exception.
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

  /// Announces that `rank` failed and skips collective `sequence`, whose mailbox is free.
  void fail(std::size_t rank, std::uint32_t sequence, const std::exception_ptr& why);

  void note_failure(std::size_t rank, std::uint32_t sequence, const std::exception_ptr& why);

  /// Prepares the next call of a member that left its last collective by an exception or before all arrived.
  void catch_up(std::size_t rank, std::int64_t timeout);
  void skip_next(std::size_t rank, const std::exception_ptr& why);
  /// Makes the peers that wait here throw `why`, after a failure in another group of the same collective.
  void cancel(std::size_t rank, const std::exception_ptr& why) noexcept;

  /// Waits until `peer` arrives at collective `sequence`, at most `timeout` nanoseconds.
  void await_slowly(std::size_t rank, std::size_t peer, std::uint32_t sequence, std::int64_t timeout,
                    const detail::MailboxWait& wait);

  /// Replaces the announced call by the failure `error()` and throws it, unless all members have arrived in the
  /// meantime.
  template <class MakeError>
  void fail_unless_all_came(std::size_t rank, std::uint32_t sequence, MakeError&& error);

  /// Waits until no peer uses the operands that `rank` published for the collective before `sequence`: each has entered
  /// `sequence`, left its collective by an exception, or returned. Ends the process if a peer takes longer than
  /// `timeout` plus `grace`: an exception would destroy operands in use.
  void await_return_of_operands(std::size_t rank, std::uint32_t sequence, std::int64_t timeout) noexcept;

  /// Leaves a collective by an exception: waits until no peer uses the operands of `rank`.
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
  /// Throws the first failure that a member brought to `sequence`, else CollectiveMismatch. All have arrived.
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

/// One thread's membership in a ThreadGroup. Checks every call against the peers' calls: if they differ, all members
/// throw a CollectiveMismatch that names both, in the same collective. Members that catch an error of a collective stay
/// in step.
class ThreadCommunicator {
 public:
  static constexpr std::size_t exchange_capacity = ThreadGroup::payload_capacity;

  /// The membership of the thread that is member `rank`. The group must outlive it.
  ThreadCommunicator(ThreadGroup& group, std::size_t rank) : group_(&group), rank_(rank), timeout_(group.timeout_) {}

  /// Returns the same membership with another timeout (spec H13). Throws InvalidArgument if `timeout` is negative.
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

  /// Leaves a collective by an exception: waits until no peer uses this member's operands.
  void cancel_operands() const noexcept { group_->leave(rank_, timeout_); }

  /// Returns this communicator: all members are threads of this process.
  [[nodiscard]] ThreadCommunicator local() const noexcept { return *this; }

  /// Makes the peers throw `why` in their next collective, which this member skips, unless `why` is an error that all
  /// members have thrown.
  void cancel(const std::exception_ptr& why) const noexcept { group_->cancel(rank_, why); }
  /// Does nothing: notices are for other processes.
  void cancel(const FailureNotice&) const noexcept {}
  /// Does nothing: every failure is reported, and a timeout does not break the group.
  void begin_attempt() const noexcept {}
  [[nodiscard]] bool is_broken() const noexcept { return false; }

  /// Marks later calls as parts of a collective of values with this structure; 0: of none.
  void set_structure(std::uint64_t structure) const noexcept { group_->members_[rank_].structure = structure; }
  /// Does nothing: all members take part in the same run.
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
  /// Returns the contribution of member `rank` to this member's last collective.
  [[nodiscard]] const ThreadGroup::Content& announced_by(std::size_t rank) const noexcept {
    return rank == rank_ ? group_->members_[rank].own : group_->mailbox(rank, group_->entered(rank_)).content;
  }

  /// Fills and announces this member's mailbox, then waits for all peers. Inlined, like its callers, so that hashes of
  /// literal names are constants.
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
      member.lent = false;  // all members proceed or none does: no peer uses the operands
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
