#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <dist/comm/call_sequence.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/mailboxes.hpp>
#include <dist/comm/self.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/shared_memory.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/device/wait.hpp>

namespace dist {

namespace detail {

/// Window memory that a member lends to its peers, one piece per operand. Peers use a piece until they enter a later
/// collective, so a piece that grows is released after the next collective that all have entered.
class Stages {
 public:
  /// Returns memory for `bytes` bytes of operand `which`: the same as before while it is large enough. Throws
  /// OutOfMemory.
  [[nodiscard]] std::byte* at(Arena& window, int which, std::size_t bytes);
  /// Gives every operand new memory at its next use.
  void retire();
  /// Releases replaced pieces. All members must have entered a later collective than the last use.
  void release_retired(Arena& window) noexcept {
    if (!retired_.empty()) [[unlikely]]
      release(window);
  }

 private:
  struct Stage {
    std::size_t place = 0;
    std::size_t bytes = 0;
  };

  void release(Arena& window) noexcept;
  void retire(const Stage& stage);

  Stage stages_[5];
  std::vector<Stage> retired_;
};

}  // namespace detail

/// The offsets of an Operand in the memory of its process; 0 if it is outside the window, as an operand without
/// elements may be.
struct OperandOffsets {
  std::uint64_t read;   ///< offset of the readable operand
  std::uint64_t write;  ///< offset of the writable operand
};

/// The processes of one node, which map each other's memory. Each provides a SharedMemory: its mailboxes, then its
/// window for operands of collectives. One thread of each process takes part.
///
/// They meet like threads (detail::Mailboxes). A process that fails writes a notice to its mailbox, a process that
/// leaves sets a flag, and PeerHealth detects processes that die. A process that times out withdraws its announcement
/// and breaks the group: late peers throw, too.
///
/// Each process brings a call or a failure to every collective. All see the same, and handle failures in the same way
/// (detail::KnownFailures).
class NodeGroup {
 public:
  /// Bytes that precede the window of a process.
  static constexpr std::size_t header_bytes = 256 * 1024;
  /// Maximum number of groups of the same processes. Each group has its own mailboxes.
  static constexpr std::size_t most_groups = 16;
  /// Returns the offset of a group's mailboxes in the memory of each process.
  [[nodiscard]] static constexpr std::size_t mailboxes_at(std::size_t group) noexcept {
    return group * (header_bytes / most_groups);
  }

  /// Another member of the group: its rank among all workers, its host and its memory.
  struct Peer {
    std::size_t worker;   ///< rank among all workers
    std::string host;     ///< its host, for messages
    SharedMemory memory;  ///< its memory, mapped by this process
  };

  /// This process is member `rank` with memory `mine`; `peers` are the node's other processes in rank order. Waits
  /// longer than `timeout` throw DeadlineExceeded. Throws InvalidArgument if `timeout` is negative.
  ///
  /// `window` is the arena of `mine` after the header: operands outside are copied to it. `group` is a unique number
  /// among groups of the same processes.
  NodeGroup(SharedMemory& mine, Arena& window, std::size_t rank, std::size_t worker, std::string host,
            std::vector<Peer> peers, PeerHealth& health, detail::SpinBudget budget, std::chrono::nanoseconds timeout,
            std::size_t group = 0);
  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;
  /// Releases no memory: slower peers may still read it.
  ~NodeGroup();

  /// The number of processes of the node.
  [[nodiscard]] std::size_t size() const noexcept { return workers_.size(); }
  /// The rank of this process on the node.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }

  /// True if these bytes are in this process's window, where peers can access them.
  [[nodiscard]] bool holds(const void* data, std::size_t bytes) const noexcept {
    const std::span<std::byte> memory = workers_[rank_].memory;
    const auto place = reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(memory.data());
    return place >= header_bytes && place <= memory.size() && bytes <= memory.size() - place;
  }

  /// Returns memory in the window for one operand of a collective. `which` is 0 or 1 for operands, 2 for sums on their
  /// way to other nodes, 3 or 4 for the contributions of this process's replicas. Throws OutOfMemory.
  [[nodiscard]] std::byte* stage(int which, std::size_t bytes);

  /// True if this member cannot continue: every later call throws the same error.
  [[nodiscard]] bool is_broken() const noexcept { return broken_ != nullptr; }

  /// The position of this member's calls in its program.
  [[nodiscard]] CallSequence& place() noexcept { return failures_.place(); }
  /// Marks later calls as parts of a collective of values with this structure; 0: of none.
  void set_structure(std::uint64_t structure) noexcept { structure_ = structure; }

  /// Starts a new attempt: later failures are reported again.
  void begin_attempt() noexcept { all_know_ = false; }
  /// Reports a failure of this process instead of taking part in the next collective, where peers throw it. Does
  /// nothing if this member has reported or received a failure in this attempt, or runs alone.
  void cancel(const FailureNotice& notice) noexcept;

 private:
  friend class NodeCommunicator;

  using NoticeFrom = detail::NoticeFrom;

  static constexpr std::size_t payload_capacity = 256;
  static constexpr std::uint32_t most_notices = 8;
  static constexpr std::uint32_t most_places = 128;

  /// The contribution of a member to a collective: its operands' offsets in its memory, or a few values.
  union alignas(8) Content {
    OperandOffsets lent;
    std::byte payload[payload_capacity];
  };
  struct alignas(cache_line) Mailbox {
    std::atomic<std::uint32_t> sequence;
    std::atomic<std::uint32_t> failed_from;  // first collective that the member abandoned; 0: none
    std::uint64_t fingerprint;
    Content content;
    CollectiveCallRecord record;  // of the last call whose fingerprint differs from the one before in this mailbox
  };
  /// A member's state in its shared memory. Zeros: it has not taken part in any collective.
  struct Member {
    Mailbox mailboxes[2];
    alignas(cache_line) detail::SharedEventCount arrivals;  // all sleep on the counter of member 0
    std::atomic<bool> departed;
    std::atomic<std::uint32_t> giving_up;           // on member 0: 1 while a member gives up
    CallSequence::Position failed_at[most_places];  // position of each failure, by number of its collective
    FailureNotice failures[most_notices];           // notices of these failures
  };
  /// Access to the mailboxes: the Medium of detail::Mailboxes.
  struct Memory {
    static constexpr bool takes_back = true;

    const NodeGroup* group;

    [[nodiscard]] std::size_t size() const noexcept { return group->size(); }
    [[nodiscard]] Mailbox& mailbox(std::size_t rank, std::uint32_t parity) const noexcept {
      return group->member(rank).mailboxes[parity];
    }
    [[nodiscard]] detail::SharedEventCount& arrivals() const noexcept { return group->member(0).arrivals; }
  };
  struct Worker {
    std::size_t worker;
    std::string host;
    std::span<std::byte> memory;
  };

  [[nodiscard]] Member& member(std::size_t rank) const noexcept {
    return *reinterpret_cast<Member*>(workers_[rank].memory.data() + mailboxes_at_);
  }
  [[nodiscard]] Member& mine() const noexcept { return member(rank_); }
  [[nodiscard]] Mailbox& mailbox(std::size_t rank) const noexcept { return boxes_.of(rank, entered_); }
  /// Returns the contribution of member `rank` to the last collective.
  [[nodiscard]] const Content& brought_by(std::size_t rank) const noexcept {
    return rank == rank_ ? own_ : mailbox(rank).content;
  }
  [[nodiscard]] bool arrived(std::size_t peer) const noexcept { return boxes_.arrived(peer, entered_); }
  /// True if the member of this mailbox, which has arrived, abandons this member's collective.
  [[nodiscard]] bool is_abandoned(const Mailbox& box) const noexcept {
    const std::uint32_t from = box.failed_from.load(std::memory_order_relaxed);
    return from != 0 && static_cast<std::int32_t>(entered_ - from) >= 0;
  }

  /// Enters the next collective. `fill` writes this member's contribution. Inlined, like its callers, so that hashes of
  /// literal names are constants.
  template <class Fill>
  DIST_ALWAYS_INLINE void meet(const CollectiveCall& call, std::int64_t timeout, std::size_t bytes, Fill&& fill) {
    fill(own_);
    if (size() == 1) return;
    place().require_shared(call.operation);
    if (broken_ || left_early_) [[unlikely]]
      settle(timeout);
    if (const NoticeFrom* const closed = failures_.find_closed()) [[unlikely]]
      raise(*closed);
    const std::uint64_t fingerprint = call.fingerprint() + structure_ * CollectiveCall::structure_factor;
    do {
      Mailbox& box = next_mailbox();
      box.fingerprint = fingerprint + place().mark() * CollectiveCall::place_factor;
      fill(box.content);
      if (box.record.fingerprint != box.fingerprint) [[unlikely]]
        record(call);
    } while (!meet_announced(timeout, bytes));
    failures_.met();
    stages_.release_retired(window_);
  }
  /// Returns the mailbox of the next collective, which this member enters with a call.
  [[nodiscard]] Mailbox& next_mailbox() noexcept {
    ++entered_;
    all_know_ = false;
    abandoned_from_ = 0;
    Mailbox& box = mailbox(rank_);
    box.failed_from.store(0, std::memory_order_relaxed);  // published by `sequence`
    return box;
  }
  void record(CollectiveCall call) noexcept;
  /// Returns true if all members take part, false if all failures are of earlier runs: then they call again.
  [[nodiscard]] bool meet_announced(std::int64_t timeout, std::size_t bytes) {
    boxes_.announce(rank_, entered_);
    bool skips = false;
    const bool same = boxes_.meet(
        rank_, entered_, mailbox(rank_).fingerprint, timeout, bytes,
        [&](std::size_t peer, const detail::MailboxWait& wait) { await_slowly(peer, timeout, wait); },
        [&](std::size_t peer) {
          if (!is_abandoned(mailbox(peer))) return;
          skip_or_refuse(peer);
          skips = true;
        });
    if (!same && !skips) refuse_different();
    return !skips;
  }

  /// Returns the position at which `peer`, which abandoned the current collective, failed.
  [[nodiscard]] CallSequence::Position place_of_failure(std::size_t peer) const noexcept;
  /// Returns the failure that kept `peer` from the current collective.
  [[nodiscard]] NoticeFrom failure_of(std::size_t peer) const noexcept;
  void skip_or_refuse(std::size_t peer);

  /// Waits until all members have arrived at a failed collective: until then they may use this member's operands.
  void settle(std::int64_t timeout);

  void await_slowly(std::size_t peer, std::int64_t timeout, const detail::MailboxWait& wait);

  /// Throws if `peer`, for which this member waits, is lost.
  void look(std::size_t peer);

  [[nodiscard]] std::string name(std::size_t rank) const;
  [[nodiscard]] std::string described(std::size_t rank) const;
  /// Describes the previous call, in which all took part: the last call of a missing member.
  [[nodiscard]] std::string last_call() const;
  [[noreturn]] void refuse_failed(const NoticeFrom& told);
  /// Leaves the current collective because of this failure, or of its known cause.
  [[noreturn]] void raise_of(const NoticeFrom& told);
  [[noreturn]] void raise(const NoticeFrom& told, bool breaks = false);
  [[noreturn]] void refuse_different();
  [[nodiscard]] CollectiveMismatch mismatch_with(std::size_t peer) const;
  [[noreturn]] void refuse_departed(std::size_t peer);
  /// Handles a timeout for `peer`. Returns if all have arrived in the meantime: either all proceed or none does.
  void fail(std::size_t peer, std::int64_t timeout);
  [[noreturn]] void refuse_late(std::size_t peer, std::int64_t timeout);
  /// Breaks the group: every later call throws `error`.
  template <class E>
  [[noreturn]] void break_with(const E& error);

  std::size_t rank_;
  std::size_t mailboxes_at_;
  Arena& window_;
  PeerHealth& health_;
  std::int64_t timeout_;
  detail::Mailboxes<Memory> boxes_;
  std::exception_ptr broken_;
  detail::KnownFailures failures_;
  std::uint64_t structure_ = 0;
  Content own_;  // this member's last contribution, for its own use: a cache line that a peer has read is far away
  std::uint32_t entered_ = 0;
  bool all_know_ = false;  // all members know the failure that ended this attempt: they see it in this collective
  std::uint32_t abandoned_from_ = 0;  // first of the last consecutive collectives that this member abandoned; 0: none
  bool left_early_ = false;           // this member has not seen all others arrive at its last collective
  std::vector<Worker> workers_;       // by rank in this group
  std::vector<SharedMemory> attached_;
  detail::Stages stages_;
};

/// One process's membership in a NodeGroup. Published operands are in this process's window: see `holds`. Checks every
/// call against the peers' calls.
class NodeCommunicator {
 public:
  static constexpr std::size_t exchange_capacity = NodeGroup::payload_capacity;

  /// The membership of this process. The group must outlive it.
  explicit NodeCommunicator(NodeGroup& group) : group_(&group), timeout_(group.timeout_) {}

  /// Returns the same membership with another timeout (spec H13). Throws InvalidArgument if `timeout` is negative.
  [[nodiscard]] NodeCommunicator with_timeout(std::chrono::nanoseconds timeout) const {
    NodeCommunicator changed = *this;
    changed.timeout_ = detail::longest_wait(timeout);
    return changed;
  }

  [[nodiscard]] std::size_t rank() const noexcept { return group_->rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return group_->size(); }
  [[nodiscard]] bool holds(const void* data, std::size_t bytes) const noexcept { return group_->holds(data, bytes); }

  /// Returns memory that peers can access (NodeGroup::stage).
  template <class T>
  [[nodiscard]] std::span<T> stage(int which, std::size_t elements) const {
    return {reinterpret_cast<T*>(group_->stage(which, elements * sizeof(T))), elements};
  }

  DIST_ALWAYS_INLINE void barrier() const {
    group_->meet({.operation = "barrier"}, timeout_, 0, [](NodeGroup::Content&) {});
  }

  DIST_ALWAYS_INLINE void publish(const CollectiveCall& call, const Operand& lent) const {
    group_->meet(call, timeout_, 0, [&](NodeGroup::Content& content) { content.lent = offsets_of(lent); });
  }
  template <class T>
  [[nodiscard]] const T* peer(std::size_t rank) const noexcept {
    return reinterpret_cast<const T*>(memory_of(rank) + group_->brought_by(rank).lent.read);
  }
  template <class T>
  [[nodiscard]] T* peer_to_write(std::size_t rank) const noexcept {
    const OperandOffsets& lent = group_->brought_by(rank).lent;
    DIST_EXPECT_INNER(lent.write != 0 || lent.read == 0);
    return reinterpret_cast<T*>(memory_of(rank) + lent.write);
  }

  /// Does nothing: the window outlives the function that lent a part of it.
  void cancel_operands() const noexcept {}

  [[nodiscard]] bool is_broken() const noexcept { return group_->is_broken(); }
  /// Records the position of this member's calls (CallSequence).
  void begin_run(std::uint64_t kind) const noexcept { group_->place().begin_run(kind); }
  void begin_alone() const noexcept { group_->place().begin_alone(); }
  void end_run() const noexcept { group_->place().end_run(); }
  void begin_call() const noexcept { group_->place().begin_call(); }
  /// Returns a group of one: every member is a process.
  [[nodiscard]] static constexpr SelfCommunicator local() noexcept { return {}; }
  void set_structure(std::uint64_t structure) const noexcept { group_->set_structure(structure); }
  void begin_attempt() const noexcept { group_->begin_attempt(); }
  /// Reports the failure of this process to the peers (NodeGroup::cancel).
  void cancel(const FailureNotice& notice) const noexcept { group_->cancel(notice); }
  /// Does nothing: no peer is a thread of this process.
  void cancel(const std::exception_ptr&) const noexcept {}

  template <class T>
  DIST_ALWAYS_INLINE void exchange(const CollectiveCall& call, std::span<const T> values) const {
    DIST_EXPECT(values.size_bytes() <= exchange_capacity);
    group_->meet(call, timeout_, values.size_bytes(), [&](NodeGroup::Content& content) {
      if (!values.empty()) std::memcpy(content.payload, values.data(), values.size_bytes());
    });
  }
  template <class T>
  [[nodiscard]] const T* received(std::size_t rank) const noexcept {
    return reinterpret_cast<const T*>(group_->brought_by(rank).payload);
  }

  /// Returns the location of an operand in this process's memory.
  [[nodiscard]] OperandOffsets offsets_of(const Operand& lent) const noexcept {
    return {place_of(lent.read), place_of(lent.write)};
  }
  /// Returns the address at which this process maps the memory of member `rank`.
  [[nodiscard]] std::byte* memory_of(std::size_t rank) const noexcept { return group_->workers_[rank].memory.data(); }

 private:
  [[nodiscard]] std::uint64_t place_of(const void* operand) const noexcept {
    if (!group_->holds(operand, 1)) return 0;
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(operand) -
                                      group_->workers_[group_->rank()].memory.data());
  }

  NodeGroup* group_;
  std::int64_t timeout_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/node/communicator.ipp>
#endif
