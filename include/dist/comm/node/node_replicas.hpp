#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/node/communicator.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/arena.hpp>

namespace dist {

/// State shared by a process's replicas for collectives with the node's other processes. All processes have equally
/// many replicas.
class NodeReplicas {
 public:
  /// `node` is this process's membership, used by replica 0. `window` is the arena that peers can access.
  NodeReplicas(const NodeCommunicator& node, Arena& window, std::size_t replicas)
      : node_(node), window_(window), members_(std::make_unique<Member[]>(replicas)) {}
  NodeReplicas(const NodeReplicas&) = delete;
  NodeReplicas& operator=(const NodeReplicas&) = delete;
  /// Releases no memory: slower peers may still read this process's last contribution, because not all collectives end
  /// with a barrier.
  ~NodeReplicas() = default;

 private:
  friend class NodeReplicaCommunicator;

  struct alignas(cache_line) Member {
    detail::Stages stages;  // operands 0 and 1, and sums on their way to other nodes
  };

  /// Exchanges `bytes`, of equal size, between the replicas 0 of all processes, and copies them: after a failure of
  /// replica 0, mailboxes are reused while other replicas still read. Data that exceeds a mailbox uses two stages in
  /// turn, because peers read one until all have arrived at the next collective.
  void send(const NodeCommunicator& node, const CollectiveCall& call, std::span<const std::byte> bytes);

  NodeCommunicator node_;
  Arena& window_;
  std::unique_ptr<Member[]> members_;
  int last_ = 0;
  std::vector<std::byte> outgoing_;  // gathered by replica 0 from the replicas of this process
  std::vector<std::byte> incoming_;  // of all replicas in the last call, in rank order
};

/// All replicas of all processes of one node as one group, which works in place: the replicas of a process meet,
/// replica 0 exchanges the locations of operands with the other processes, and the replicas meet again. Operands are in
/// the process's window, unless the node has one process.
///
/// The caller reports failures of a replica to both groups (Hierarchical).
class NodeReplicaCommunicator {
 public:
  static constexpr std::size_t exchange_capacity = ThreadCommunicator::exchange_capacity;

  /// The membership of replica `here.rank()`. Waits at most `timeout`, and longer while replica 0 meets other
  /// processes.
  NodeReplicaCommunicator(NodeReplicas& group, const ThreadCommunicator& here, std::chrono::nanoseconds timeout)
      : group_(&group),
        here_(here.with_timeout(timeout)),
        patient_(here.with_timeout(detail::longer(timeout, patience))),
        node_(group.node_.with_timeout(timeout)),
        replicas_(here.size()) {}

  [[nodiscard]] NodeReplicaCommunicator with_timeout(std::chrono::nanoseconds timeout) const {
    return {*group_, here_, timeout};
  }

  /// Ranks are ordered by process, then by replica.
  [[nodiscard]] std::size_t rank() const noexcept { return node_.rank() * replicas_ + here_.rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return node_.size() * replicas_; }
  /// The number of processes on the node.
  [[nodiscard]] std::size_t processes() const noexcept { return node_.size(); }
  [[nodiscard]] ThreadCommunicator local() const noexcept { return here_; }

  /// True if peers can access these bytes.
  [[nodiscard]] bool holds(const void* data, std::size_t bytes) const noexcept {
    return is_one_process() || node_.holds(data, bytes);
  }
  /// Returns memory that peers can access, for operand 0 or 1 of the next collective, or for sums (2). Throws
  /// OutOfMemory.
  template <class T>
  [[nodiscard]] std::span<T> stage(int which, std::size_t elements) const {
    return {reinterpret_cast<T*>(me().stages.at(group_->window_, which, elements * sizeof(T))), elements};
  }

  void barrier() const;

  void publish(const CollectiveCall& call, const Operand& lent) const;
  template <class T>
  [[nodiscard]] const T* peer(std::size_t rank) const noexcept {
    if (is_one_process()) return here_.peer<T>(rank);
    if (is_one_replica()) return node_.peer<T>(rank);
    return reinterpret_cast<const T*>(node_.memory_of(rank / replicas_) + offsets_in_window(rank).read);
  }
  template <class T>
  [[nodiscard]] T* peer_to_write(std::size_t rank) const noexcept {
    if (is_one_process()) return here_.peer_to_write<T>(rank);
    if (is_one_replica()) return node_.peer_to_write<T>(rank);
    const OperandOffsets lent = offsets_in_window(rank);
    DIST_EXPECT_INNER(lent.write != 0 || lent.read == 0);
    return reinterpret_cast<T*>(node_.memory_of(rank / replicas_) + lent.write);
  }
  /// Counts members, of every `step`-th one, whose operand to read is in a window. Only for several replicas and
  /// processes.
  [[nodiscard]] std::size_t count_reachable(std::size_t step) const noexcept {
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < size(); rank += step) count += offsets_in_window(rank).read != 0;
    return count;
  }

  template <class T>
  void exchange(const CollectiveCall& call, std::span<const T> values) const {
    exchange_bytes(call, std::as_bytes(values));
  }
  template <class T>
  [[nodiscard]] const T* received(std::size_t rank) const noexcept {
    if (is_one_process()) return here_.received<T>(rank);
    if (is_one_replica()) return node_.received<T>(rank);
    const std::vector<std::byte>& of_all = group_->incoming_;
    return reinterpret_cast<const T*>(of_all.data() + rank * (of_all.size() / size()));
  }

  /// Operands in the window outlive the function that lent them. Stages are retired, because peers may still use them.
  void cancel_operands() const noexcept {
    if (is_one_process())
      here_.cancel_operands();
    else
      me().stages.retire();
  }

  void begin_attempt() const noexcept {
    if (leads()) node_.begin_attempt();
  }
  void cancel(const FailureNotice& notice) const noexcept {
    if (leads()) node_.cancel(notice);
  }
  void cancel(const std::exception_ptr& why) const noexcept { here_.cancel(why); }
  [[nodiscard]] bool is_broken() const noexcept { return leads() && node_.is_broken(); }

  void set_structure(std::uint64_t structure) const noexcept {
    here_.set_structure(structure);
    if (leads()) node_.set_structure(structure);
  }
  void begin_run(std::uint64_t kind) const noexcept {
    if (leads()) node_.begin_run(kind);
  }
  void begin_alone() const noexcept {
    if (leads()) node_.begin_alone();
  }
  void end_run() const noexcept {
    if (leads()) node_.end_run();
  }
  void begin_call() const noexcept {
    if (leads()) node_.begin_call();
  }

 private:
  static constexpr int patience = 8;

  [[nodiscard]] bool is_one_process() const noexcept { return node_.size() == 1; }
  [[nodiscard]] bool is_one_replica() const noexcept { return replicas_ == 1; }
  [[nodiscard]] bool leads() const noexcept { return here_.rank() == 0; }
  [[nodiscard]] NodeReplicas::Member& me() const noexcept { return group_->members_[here_.rank()]; }

  /// Returns the location of a member's operands in the memory of its process. Only for several replicas and processes.
  [[nodiscard]] OperandOffsets offsets_in_window(std::size_t rank) const noexcept {
    OperandOffsets offsets;
    std::memcpy(&offsets, group_->incoming_.data() + rank * sizeof(offsets), sizeof(offsets));
    return offsets;
  }

  /// Calls `meet(level)` with the level that has all members, if there is one. Otherwise the replicas of this process
  /// meet by `meet`, replica 0 meets the other processes by `between()`, and the replicas meet again: all have then
  /// entered a collective since a stage was retired.
  template <class Meet, class Between>
  void in_levels(Meet&& meet, Between&& between) const;
  void exchange_bytes(const CollectiveCall& call, std::span<const std::byte> values) const;

  NodeReplicas* group_;
  ThreadCommunicator here_;
  ThreadCommunicator patient_;  // waits longer, while replica 0 meets the other processes
  NodeCommunicator node_;
  std::size_t replicas_;
};

namespace detail {
template <>
inline constexpr bool has_levels<NodeReplicaCommunicator> = true;
}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/node/node_replicas.ipp>
#endif
