/// Implements `replica.neighbor_exchange` and subgroups for all strategies.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/communication_options.hpp>
#include <dist/comm/hierarchical_neighbor_exchange.hpp>
#include <dist/comm/neighbor_exchange.hpp>
#include <dist/comm/neighbor_message.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

template <class S>
void ReplicaContext<S>::neighbor_exchange(const MessageList<SendTo>& sends, const MessageList<ReceiveFrom>& receives,
                                          const CommunicationOptions& options) const {
  collective("neighbor_exchange", options,
             [&](const Collectives& ops) { dist::neighbor_exchange(ops, sends.all(), receives.all()); });
}

/// The replicas that passed the same colour to `replica.split(color, key)`, such as a row or column of a grid. Valid
/// within the replica function that created it.
///
/// Its collectives are among these replicas, in any process. All replicas of the strategy must call the same collective
/// of their subgroups at the same time, each with its own values and extents. For independent progress, split the
/// strategy (`MultiWorker::split`).
template <class Replica>
class Subgroup {
 public:
  /// `replicas` are the members by rank.
  Subgroup(const Replica& replica, std::vector<std::size_t> replicas, std::size_t rank)
      : replica_(&replica), replicas_(std::move(replicas)), rank_(rank) {}

  /// From 0 to `size() - 1`, in the order of keys, then of replicas.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  /// The number of replicas in the group.
  [[nodiscard]] std::size_t size() const noexcept { return replicas_.size(); }
  /// The members' numbers among all replicas, by rank.
  [[nodiscard]] std::span<const std::size_t> replicas() const noexcept { return replicas_; }

  /// Returns the reduction of the members' values, bit-identical on all. A collective call, like all overloads.
  template <Reducible T, class Op>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] T all_reduce(Op op, T value, const CommunicationOptions& options = {}) const {
    all_reduce(op, std::span<T>{&value, 1}, options);
    return value;
  }
  /// Reduces in place, element by element, in the order of ranks: each member reduces a share. Throws ShapeMismatch if
  /// counts differ.
  template <Reducible T, class Op>
  void all_reduce(Op, std::span<T> values, const CommunicationOptions& options = {}) const {
    if constexpr (detail::require_reduce_op<Op, T>()) {
      const auto share = [&](std::size_t member) {
        const IndexRange range = shard_of(values.size(), member, size(), cache_line / sizeof(T));
        return values.subspan(range.begin, range.size());
      };
      const std::span<T> mine = share(rank_);
      AlignedBuffer<T> all_values(mine.size() * size());
      exchange([&](std::size_t member) { return share(member); },
               [&](std::size_t member) {
                 return std::span<T>{all_values.data() + member * mine.size(), mine.size()};
               },
               options);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        auto combined = static_cast<Accumulator<T>>(all_values.data()[i]);
        for (std::size_t member = 1; member < size(); ++member)
          combined = Op{}(combined, static_cast<Accumulator<T>>(all_values.data()[member * mine.size() + i]));
        mine[i] = static_cast<T>(Op::finish(combined, size()));
      }
      exchange([&](std::size_t member) { return member == rank_ ? std::span<T>{} : mine; },
               [&](std::size_t member) { return member == rank_ ? std::span<T>{} : share(member); }, options);
    }
  }

  /// Returns the values of all members, concatenated in rank order. Counts may differ.
  template <Reducible T>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] std::vector<T> all_gather(std::span<const T> mine,
                                                                   const CommunicationOptions& options = {}) const {
    const std::size_t count = mine.size();
    std::vector<std::size_t> counts(size());
    exchange(
        [&](std::size_t) {
          return std::span{&count, 1};
        },
        [&](std::size_t member) { return std::span{counts}.subspan(member, 1); }, options);
    std::size_t total = 0;
    std::vector<std::size_t> first;
    for (const std::size_t of_member : counts) first.push_back(std::exchange(total, total + of_member));
    std::vector<T> all(total);
    exchange([&](std::size_t) { return mine; },
             [&](std::size_t member) { return std::span{all}.subspan(first[member], counts[member]); }, options);
    return all;
  }

  /// Copies the values of member `root` to every member. Throws InvalidArgument if `root` is out of range, and
  /// ShapeMismatch if counts differ.
  template <Reducible T>
  void broadcast(std::span<T> values, std::size_t root, const CommunicationOptions& options = {}) const {
    if (root >= size())
      throw InvalidArgument("The root of a broadcast in a subgroup is out of range",
                            concat("root ", root, " of ", size(), " replicas"), "Give a root from 0 to size() - 1");
    std::vector<SendTo> sends;
    std::vector<ReceiveFrom> receives;
    if (rank_ != root)
      receives.emplace_back(replicas_[root], values);
    else
      for (const std::size_t replica : replicas_)
        if (replica != replicas_[root]) sends.emplace_back(replica, values);
    replica_->neighbor_exchange(sends, receives, options);
  }

  /// Exchanges elements like ReplicaContext::neighbor_exchange, with ranks of this subgroup. Errors name replicas.
  void neighbor_exchange(const MessageList<SendTo>& sends, const MessageList<ReceiveFrom>& receives,
                         const CommunicationOptions& options = {}) const {
    const auto among_all = [&]<class Message>(std::span<const Message> messages) {
      std::vector<Message> changed;
      for (Message message : messages) {
        if (message.peer >= size()) detail::refuse_neighbor(message.peer, size());
        message.peer = replicas_[message.peer];
        changed.push_back(message);
      }
      return changed;
    };
    replica_->neighbor_exchange(among_all(sends.all()), among_all(receives.all()), options);
  }

  /// Returns once every replica has called it.
  void barrier(const CommunicationOptions& options = {}) const { replica_->barrier(options); }

 private:
  /// Exchanges one message with each member, including this one.
  template <class Out, class In>
  void exchange(Out&& out, In&& in, const CommunicationOptions& options) const {
    std::vector<SendTo> sends;
    std::vector<ReceiveFrom> receives;
    for (std::size_t member = 0; member < size(); ++member) {
      sends.emplace_back(replicas_[member], out(member));
      receives.emplace_back(replicas_[member], in(member));
    }
    replica_->neighbor_exchange(sends, receives, options);
  }

  const Replica* replica_;
  std::vector<std::size_t> replicas_;
  std::size_t rank_;
};

template <class S>
Subgroup<ReplicaContext<S>> ReplicaContext<S>::split(std::size_t color, std::size_t key,
                                                     const CommunicationOptions& options) const {
  struct Choice {
    std::size_t color;
    std::size_t key;
  };
  PerReplica<Choice> chosen(num_replicas_in_sync());
  collective("split", options, [&](const Collectives& ops) {
    ops.all_gather_values("split", Choice{color, key}, std::span<Choice>{chosen.begin(), chosen.size()});
  });
  std::vector<std::size_t> members;
  for (std::size_t replica = 0; replica < chosen.size(); ++replica)
    if (chosen[replica].color == color) members.push_back(replica);
  std::stable_sort(members.begin(), members.end(),
                   [&](std::size_t a, std::size_t b) { return chosen[a].key < chosen[b].key; });
  const auto mine = std::find(members.begin(), members.end(), replica_id().index());
  return {*this, members, static_cast<std::size_t>(mine - members.begin())};
}

}  // namespace dist
