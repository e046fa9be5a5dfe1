#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/node/communicator.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/arena.hpp>

namespace dist {

/// What the replicas of one process share on their way to those of the node's other processes. Every process has as many
/// replicas.
class NodeReplicas {
 public:
  /// `node` is this process's membership, which replica 0 uses, and `window` the arena that its peers can reach.
  NodeReplicas(const NodeCommunicator& node, Arena& window, std::size_t replicas)
      : node_(node), window_(window), members_(std::make_unique<Member[]>(replicas)) {}
  NodeReplicas(const NodeReplicas&) = delete;
  NodeReplicas& operator=(const NodeReplicas&) = delete;
  /// Nothing is given back: a slower peer may still read what this process brought to its last collective, of which not
  /// all end with a barrier. The memory ends with the window.
  ~NodeReplicas() = default;

 private:
  friend class NodeReplicaCommunicator;

  struct alignas(cache_line) Member {
    detail::Stages stages;  // for operands 0 and 1, and for sums on their way to other nodes
  };

  /// Replica 0 gives the other processes `bytes`, as many as they give, and copies what they give: where replica 0 fails,
  /// mailboxes are used again while the other replicas of its process still read. There are two stages for what no mailbox
  /// holds, because peers read one until all have come to the next collective.
  void send(const NodeCommunicator& node, const CollectiveCall& call, std::span<const std::byte> bytes) {
    const bool fits = bytes.size() <= NodeCommunicator::exchange_capacity;
    if (fits) {
      node.exchange(call, bytes);
    } else {
      last_ = 1 - last_;
      std::byte* const block = node.template stage<std::byte>(3 + last_, bytes.size()).data();
      std::memcpy(block, bytes.data(), bytes.size());
      node.publish(call, {.read = block});
    }
    incoming_.clear();
    for (std::size_t rank = 0; rank < node.size(); ++rank) {
      const std::byte* const brought =
          fits ? node.template received<std::byte>(rank) : node.template peer<std::byte>(rank);
      incoming_.insert(incoming_.end(), brought, brought + bytes.size());
    }
  }

  NodeCommunicator node_;
  Arena& window_;
  std::unique_ptr<Member[]> members_;
  int last_ = 0;
  std::vector<std::byte> outgoing_;  // what replica 0 gathers from those of this process
  std::vector<std::byte> incoming_;  // of all replicas in the last call, in the order of their ranks
};

/// All replicas of all processes of one node as one group, which works in place on the memory of all of them: the
/// replicas of a process meet, replica 0 meets those of the other processes and takes along where the operands of its
/// process lie, and the replicas meet again. Operands lie in the process's window, unless the process is alone.
///
/// A replica that fails is to be told to both groups: whoever calls tells failures (Hierarchical).
class NodeReplicaCommunicator {
 public:
  static constexpr std::size_t exchange_capacity = ThreadCommunicator::exchange_capacity;

  /// The membership of replica `here.rank()`. A member waits for others as long as `here` does, and longer while
  /// replica 0 is with the other processes.
  NodeReplicaCommunicator(NodeReplicas& group, const ThreadCommunicator& here, std::chrono::nanoseconds timeout)
      : group_(&group),
        here_(here.with_timeout(timeout)),
        patient_(here.with_timeout(detail::longer(timeout, patience))),
        node_(group.node_.with_timeout(timeout)),
        replicas_(here.size()) {}

  [[nodiscard]] NodeReplicaCommunicator with_timeout(std::chrono::nanoseconds timeout) const {
    return {*group_, here_, timeout};
  }

  /// Process by process, and in each replica by replica.
  [[nodiscard]] std::size_t rank() const noexcept { return node_.rank() * replicas_ + here_.rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return node_.size() * replicas_; }
  [[nodiscard]] std::size_t processes() const noexcept { return node_.size(); }
  [[nodiscard]] ThreadCommunicator local() const noexcept { return here_; }

  /// Whether the peers can reach these bytes.
  [[nodiscard]] bool holds(const void* data, std::size_t bytes) const noexcept {
    return is_one_process() || node_.holds(data, bytes);
  }
  /// Memory that they can reach for operand `which`, 0 or 1, of the next collective, or for sums: 2. Throws OutOfMemory.
  template <class T>
  [[nodiscard]] std::span<T> stage(int which, std::size_t elements) const {
    return {reinterpret_cast<T*>(me().stages.at(group_->window_, which, elements * sizeof(T))), elements};
  }

  void barrier() const {
    in_levels([](const auto& level) { level.barrier(); }, [&] { node_.barrier(); });
  }

  void publish(const CollectiveCall& call, const Operand& lent) const {
    in_levels([&](const auto& level) { level.publish(call, lent); },
              [&] {
                std::vector<std::byte>& offsets = group_->outgoing_;
                offsets.resize(replicas_ * sizeof(OperandOffsets));
                for (std::size_t replica = 0; replica < replicas_; ++replica) {
                  const OperandOffsets of_replica = node_.offsets_of(here_.lent_by(replica));
                  std::memcpy(offsets.data() + replica * sizeof(of_replica), &of_replica, sizeof(of_replica));
                }
                group_->send(node_, call, offsets);
              });
  }
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
  /// Counts the members, of every `step`-th one, whose operand to read lies in the window of their process. For several
  /// replicas and processes only.
  [[nodiscard]] std::size_t count_reachable(std::size_t step) const noexcept {
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < size(); rank += step) count += offsets_in_window(rank).read != 0;
    return count;
  }

  template <class T>
  void exchange(const CollectiveCall& call, std::span<const T> values) const {
    in_levels([&](const auto& level) { level.exchange(call, values); },
              [&] {
                const std::size_t bytes = values.size_bytes();
                std::vector<std::byte>& of_process = group_->outgoing_;
                of_process.resize(replicas_ * bytes);
                for (std::size_t replica = 0; replica < replicas_ && bytes != 0; ++replica)
                  std::memcpy(of_process.data() + replica * bytes, here_.received<T>(replica), bytes);
                group_->send(node_, call, of_process);
              });
  }
  template <class T>
  [[nodiscard]] const T* received(std::size_t rank) const noexcept {
    if (is_one_process()) return here_.received<T>(rank);
    if (is_one_replica()) return node_.received<T>(rank);
    const std::vector<std::byte>& of_all = group_->incoming_;
    return reinterpret_cast<const T*>(of_all.data() + rank * (of_all.size() / size()));
  }

  /// What lies in the window stays there after the function that lent it; peers may go on to use a stage.
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

  /// Where a member's operands lie in the memory of its process. Of several replicas and processes.
  [[nodiscard]] OperandOffsets offsets_in_window(std::size_t rank) const noexcept {
    OperandOffsets offsets;
    std::memcpy(&offsets, group_->incoming_.data() + rank * sizeof(offsets), sizeof(offsets));
    return offsets;
  }

  /// Calls `meet(level)` with the level that has all members, if there is one. Else the replicas of this process meet by
  /// `meet`, then replica 0 meets the other processes by `between()`, then the replicas meet again. After that all members
  /// have entered a collective after the retirement of a stage.
  template <class Meet, class Between>
  void in_levels(Meet&& meet, Between&& between) const {
    if (is_one_process()) return meet(here_);
    if (is_one_replica()) {
      meet(node_);
    } else {
      meet(here_);
      if (leads()) between();
      patient_.barrier();
    }
    me().stages.release_retired(group_->window_);
  }

  NodeReplicas* group_;
  ThreadCommunicator here_;
  ThreadCommunicator patient_;  // the same, for waiting while replica 0 is with the other processes
  NodeCommunicator node_;
  std::size_t replicas_;
};

namespace detail {
template <>
inline constexpr bool has_levels<NodeReplicaCommunicator> = true;
}  // namespace detail

}  // namespace dist
