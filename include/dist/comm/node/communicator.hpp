#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/call_sequence.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/known_failures.hpp>
#include <dist/comm/mailboxes.hpp>
#include <dist/comm/self.hpp>
#include <dist/core/algorithms.hpp>
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

/// Memory of a window that a member of a group lends to its peers, a piece for each operand of a collective. Peers use a
/// piece until they enter a later collective. So the memory of a piece that grows is released after the next collective that
/// all members have entered.
class Stages {
 public:
  /// Returns memory for `bytes` bytes of operand `which`: the same as before while it is large enough. Throws
  /// OutOfMemory.
  [[nodiscard]] std::byte* at(Arena& window, int which, std::size_t bytes);
  /// Gives every operand other memory at its next use.
  void retire();
  /// Releases the memory of replaced pieces. All members must have entered a collective after the last one with these
  /// pieces.
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

/// An Operand as other processes find it: its offsets in the memory of its process. An offset is 0 if the operand lies
/// elsewhere, as one without elements may.
struct OperandOffsets {
  std::uint64_t read;
  std::uint64_t write;
};

/// The processes of one node, which map each other's memory. Each brings a SharedMemory: its first bytes hold the
/// mailboxes of the process, the rest is its window, where operands of collectives lie. One thread of each process
/// takes part.
///
/// They meet as threads do (detail::Mailboxes). A process that fails writes a notice into its mailbox, where its peers look
/// for its next collective. A process that leaves writes one, too. PeerHealth finds a process that dies. A process that gives
/// up waiting takes its announcement back, so that a late peer throws, too. That breaks the group.
///
/// To each collective every process brings either its call or a failure. What all brought is the same for all that look,
/// and so is what becomes of the failures (detail::KnownFailures).
class NodeGroup {
 public:
  /// What a process keeps in front of its window.
  static constexpr std::size_t header_bytes = 256 * 1024;
  /// The same processes may meet in so many groups, each with mailboxes of its own.
  static constexpr std::size_t most_groups = 16;
  /// Where the mailboxes of a group lie in the memory of each process.
  [[nodiscard]] static constexpr std::size_t mailboxes_at(std::size_t group) noexcept {
    return group * (header_bytes / most_groups);
  }

  /// A member of the group: its rank among all workers, and where it runs.
  struct Peer {
    std::size_t worker;
    std::string host;
    SharedMemory memory;
  };

  /// `mine` is this process's memory, and `peers` are the others of the node, in the order of their ranks here, without
  /// this one, which is member `rank`. A member that waits longer than `timeout` for another throws DeadlineExceeded.
  /// Throws InvalidArgument for a negative one.
  ///
  /// `window` is the arena of what follows the header in `mine`: operands that do not lie there are copied to it.
  /// `group` tells the groups of the same processes apart; a number is taken once.
  NodeGroup(SharedMemory& mine, Arena& window, std::size_t rank, std::size_t worker, std::string host,
            std::vector<Peer> peers, PeerHealth& health, detail::SpinBudget budget, std::chrono::nanoseconds timeout,
            std::size_t group = 0);
  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;
  /// Releases no memory: a slower peer may still read it. The memory ends with the window.
  ~NodeGroup();

  [[nodiscard]] std::size_t size() const noexcept { return workers_.size(); }
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }

  /// Whether these bytes lie in this process's window, where the peers can reach them.
  [[nodiscard]] bool holds(const void* data, std::size_t bytes) const noexcept {
    const std::span<std::byte> memory = workers_[rank_].memory;
    const auto place = reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(memory.data());
    return place >= header_bytes && place <= memory.size() && bytes <= memory.size() - place;
  }

  /// Memory in the window for operand `which`, 0 or 1, of one collective, 2 for sums on their way to other nodes, or 3 or 4
  /// for what the replicas of this process bring. Throws OutOfMemory.
  [[nodiscard]] std::byte* stage(int which, std::size_t bytes);

  /// Whether this member gave up waiting for another one.
  [[nodiscard]] bool is_broken() const noexcept { return broken_ != nullptr; }

  /// Where this member's calls stand.
  [[nodiscard]] CallSequence& place() noexcept { return failures_.place(); }
  /// This member's calls from here on are parts of a collective of values with this structure; 0: of none.
  void set_structure(std::uint64_t structure) noexcept { structure_ = structure; }

  /// Starts a new attempt: from here on a failure is reported again.
  void begin_attempt() noexcept { all_know_ = false; }
  /// Tells the peers, instead of taking part in the next collective, that this process failed and why: they throw what
  /// the notice says there. Does nothing where they know already: they were told in this attempt, or saw it themselves;
  /// nor in a run of this process alone.
  void cancel(const FailureNotice& notice) noexcept;

 private:
  friend class NodeCommunicator;

  using NoticeFrom = detail::NoticeFrom;

  static constexpr std::size_t payload_capacity = 256;
  static constexpr std::uint32_t most_notices = 8;
  static constexpr std::uint32_t most_places = 128;

  /// What a member brings to a collective: where its operands are in its memory, or a few values.
  union alignas(8) Content {
    OperandOffsets lent;
    std::byte payload[payload_capacity];
  };
  struct alignas(cache_line) Mailbox {
    std::atomic<std::uint32_t> sequence;
    std::atomic<std::uint32_t> failed_from;  // from this one on the member came to none and says why; 0: to all
    std::uint64_t fingerprint;
    Content content;
    CollectiveCallRecord record;  // of the last call with another fingerprint than the one before in this mailbox
  };
  /// Zeroed memory is a member that has taken part in no collective yet.
  struct Member {
    Mailbox mailboxes[2];
    alignas(cache_line) detail::SharedEventCount arrivals;  // all sleep at that of member 0
    std::atomic<bool> departed;
    std::atomic<std::uint32_t> giving_up;           // of member 0: 1 while a member gives up
    CallSequence::Position failed_at[most_places];  // where it failed instead of coming to a collective, by its number
    FailureNotice failures[most_notices];           // and why
  };
  /// Where they lie: a Medium of Mailboxes.
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
  /// What member `rank` brought to the last collective.
  [[nodiscard]] const Content& brought_by(std::size_t rank) const noexcept {
    return rank == rank_ ? own_ : mailbox(rank).content;
  }
  [[nodiscard]] bool arrived(std::size_t peer) const noexcept { return boxes_.arrived(peer, entered_); }
  /// Whether the member of this mailbox, which has arrived, takes part in this member's collective.
  [[nodiscard]] bool is_abandoned(const Mailbox& box) const noexcept {
    const std::uint32_t from = box.failed_from.load(std::memory_order_relaxed);
    return from != 0 && static_cast<std::int32_t>(entered_ - from) >= 0;
  }

  /// Enters the next collective: `fill` writes what this member brings. Inlined, as its callers are, to where the names of
  /// the call are literals: their hashes are constants there.
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
  /// That of the next collective, which this member enters with a call.
  [[nodiscard]] Mailbox& next_mailbox() noexcept {
    ++entered_;
    all_know_ = false;
    abandoned_from_ = 0;
    Mailbox& box = mailbox(rank_);
    box.failed_from.store(0, std::memory_order_relaxed);  // comes with `sequence`
    return box;
  }
  void record(CollectiveCall call) noexcept;
  /// Whether all came. If not, and all failures are of earlier runs, the members call again.
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

  /// Where `peer`, which has abandoned the collective that this member is in, failed.
  [[nodiscard]] CallSequence::Position place_of_failure(std::size_t peer) const noexcept;
  /// What kept `peer` from the collective that this member is in.
  [[nodiscard]] NoticeFrom failure_of(std::size_t peer) const noexcept;
  void skip_or_refuse(std::size_t peer);

  /// Before operands are touched again: until all have come to a collective that failed, they may use what this member
  /// published before it left.
  void settle(std::int64_t timeout);

  void await_slowly(std::size_t peer, std::int64_t timeout, const detail::MailboxWait& wait);

  /// Called while waiting for `peer`: throws if it is lost, has left, or is late.
  void look(std::size_t peer);

  [[nodiscard]] std::string name(std::size_t rank) const;
  [[nodiscard]] std::string described(std::size_t rank) const;
  /// The last call of a member that is missing in this one: all took part in the one before.
  [[nodiscard]] std::string last_call() const;
  [[noreturn]] void refuse_failed(const NoticeFrom& told);
  /// Leaves the collective that this member is in because of that failure, or of what is known to be its cause.
  [[noreturn]] void raise_of(const NoticeFrom& told);
  [[noreturn]] void raise(const NoticeFrom& told, bool breaks = false);
  [[noreturn]] void refuse_different();
  [[nodiscard]] CollectiveMismatch mismatch_with(std::size_t peer) const;
  [[noreturn]] void refuse_departed(std::size_t peer);
  /// The time for `peer` is over. Returns if all have come in the meantime: either all members go on or none does.
  void fail(std::size_t peer, std::int64_t timeout);
  [[noreturn]] void refuse_late(std::size_t peer, std::int64_t timeout);
  /// This member cannot go on: every later call throws the same.
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
  Content own_;  // what this member brought last, for itself: a line that a peer has read is far away
  std::uint32_t entered_ = 0;
  bool all_know_ = false;  // all members know the failure that ended this attempt: they see it in this collective
  std::uint32_t abandoned_from_ = 0;  // the first of the collectives that this member last abandoned in a row
  bool left_early_ = false;           // this member has not seen all others come to its last collective
  std::vector<Worker> workers_;       // by rank in this group
  std::vector<SharedMemory> attached_;
  detail::Stages stages_;
};

/// The membership of a NodeGroup. Operands that are published lie in this process's window: see `holds`. Every call
/// is checked against the peers' calls.
class NodeCommunicator {
 public:
  static constexpr std::size_t exchange_capacity = NodeGroup::payload_capacity;

  explicit NodeCommunicator(NodeGroup& group) : group_(&group), timeout_(group.timeout_) {}

  /// The same membership, which waits longer or shorter than the group does (spec H13). Throws InvalidArgument for a
  /// negative timeout.
  [[nodiscard]] NodeCommunicator with_timeout(std::chrono::nanoseconds timeout) const {
    NodeCommunicator changed = *this;
    changed.timeout_ = detail::longest_wait(timeout);
    return changed;
  }

  [[nodiscard]] std::size_t rank() const noexcept { return group_->rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return group_->size(); }
  [[nodiscard]] bool holds(const void* data, std::size_t bytes) const noexcept { return group_->holds(data, bytes); }

  /// Memory that the peers can reach (NodeGroup::stage).
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

  /// Nothing to wait for: the window outlives the function that lent a part of it.
  void cancel_operands() const noexcept {}

  [[nodiscard]] bool is_broken() const noexcept { return group_->is_broken(); }
  /// Where this member's calls stand (CallSequence).
  void begin_run(std::uint64_t kind) const noexcept { group_->place().begin_run(kind); }
  void begin_alone() const noexcept { group_->place().begin_alone(); }
  void end_run() const noexcept { group_->place().end_run(); }
  void begin_call() const noexcept { group_->place().begin_call(); }
  /// Every member is a process.
  [[nodiscard]] static constexpr SelfCommunicator local() noexcept { return {}; }
  void set_structure(std::uint64_t structure) const noexcept { group_->set_structure(structure); }
  void begin_attempt() const noexcept { group_->begin_attempt(); }
  /// Tells the peers that this process failed (NodeGroup::cancel).
  void cancel(const FailureNotice& notice) const noexcept { group_->cancel(notice); }
  /// No peer is a thread of this process.
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

  /// Where an operand lies in this process's memory.
  [[nodiscard]] OperandOffsets offsets_of(const Operand& lent) const noexcept {
    return {place_of(lent.read), place_of(lent.write)};
  }
  /// The memory of member `rank`, as this process sees it.
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
