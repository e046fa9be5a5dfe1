#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/message_collectives.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

namespace detail {

/// A binomial tree of members that pass messages, an algorithm of MessageCollectives. Members are numbered from the root
/// on: number n is the root of the numbers n to n + 2^k - 1, where 2^k is the lowest bit of n, as far as there are so
/// many, and number n + 2^j is a child of it for each j < k.
template <class C>
class MessageTree {
 public:
  explicit MessageTree(const C& comm, std::size_t root = 0)
      : comm_(comm), root_(root), number_((comm.rank() + comm.size() - root) % comm.size()) {}

  /// Values go down the tree of member `root`, whole.
  void broadcast(std::size_t root, Elements values) const {
    const std::span<std::byte> bytes = values.bytes({0, values.count()});
    MessageTree{comm_, root}.go_down([&](std::size_t, std::size_t) { return bytes; });
  }
  /// Gives every member its part of what the root has; the others' parts may change.
  void scatter(Elements all, FunctionRef<IndexRange(std::size_t)> part_of_number) const {
    go_down([&](std::size_t first, std::size_t end) { return all.bytes(parts(part_of_number, first, end)); });
  }
  /// Parts go up the tree to its root, and all of them down.
  void gather(Elements all, FunctionRef<IndexRange(std::size_t)> part) const {
    const auto bytes = [&](std::size_t first, std::size_t end) { return all.bytes(parts(part, first, end)); };
    for_each_child_up([&](std::size_t child, std::size_t end) { receive(comm_, bytes(child, end), rank_of(child)); });
    if (number_ != 0) send(comm_, bytes(number_, subtree_end()), parent());
    broadcast(root_, all);
  }

  template <class T, class Op>
  void all_reduce(Op op, std::span<T> values) const {
    if (const std::span<const Accumulator<T>> sums = reduce_up(op, std::span<const T>{values}); number_ == 0)
      finish_sums<T>(op, comm_.size(), sums, 0, [&](std::size_t first, std::span<const T> reduced) {
        std::copy(reduced.begin(), reduced.end(), values.data() + first);
      });
    broadcast(root_, Elements{values});
  }
  /// Sums go up whole, and each shard of them down to its owner.
  template <class T, class Op, class Use>
  void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
    reduce_up(op, values);
    const std::span<Accumulator<T>> sums = scratch_of<Accumulator<T>>(comm_, 0, values.size());
    scatter(Elements{sums},
            [&](std::size_t number) { return message_shard(values.size(), rank_of(number), comm_.size()); });
    const IndexRange mine = message_shard(values.size(), comm_.rank(), comm_.size());
    finish_sums<T>(op, comm_.size(), std::span<const Accumulator<T>>{sums.subspan(mine.begin, mine.size())}, mine.begin,
                   use);
  }

 private:
  [[nodiscard]] std::size_t rank_of(std::size_t number) const noexcept { return (number + root_) % comm_.size(); }
  /// How far below this member its children begin: twice the distance of the farthest one, or more.
  [[nodiscard]] std::size_t reach() const noexcept {
    return number_ == 0 ? std::bit_ceil(comm_.size()) : number_ & (~number_ + 1);
  }
  [[nodiscard]] std::size_t subtree_end() const noexcept { return std::min(number_ + reach(), comm_.size()); }
  [[nodiscard]] std::size_t parent() const noexcept { return rank_of(number_ - reach()); }
  /// What the members with these numbers have, which follow each other.
  [[nodiscard]] static IndexRange parts(FunctionRef<IndexRange(std::size_t)> part, std::size_t first, std::size_t end) {
    return {part(first).begin, part(end - 1).end};
  }

  /// Calls `visit(child, end)` for each child, nearest first, whose subtree ends before number `end`.
  template <class Visit>
  void for_each_child_up(Visit&& visit) const {
    for (std::size_t distance = 1; distance < reach() && number_ + distance < comm_.size(); distance *= 2)
      visit(number_ + distance, std::min(number_ + 2 * distance, comm_.size()));
  }
  /// `bytes(first, end)` are for the members with these numbers. The farthest child, which has most below it, is first.
  template <class Bytes>
  void go_down(Bytes&& bytes) const {
    if (number_ != 0) receive(comm_, bytes(number_, subtree_end()), parent());
    for (std::size_t distance = reach() / 2; distance > 0; distance /= 2)
      if (const std::size_t child = number_ + distance; child < comm_.size())
        send(comm_, bytes(child, std::min(child + distance, comm_.size())), rank_of(child));
  }

  /// On the root the sums of all, not finished yet; on others those of what is below. Each member combines its own values
  /// with its children's, nearest first, so that the bits are the same in every run.
  template <class T, class Op>
  std::span<const Accumulator<T>> reduce_up(Op op, std::span<const T> values) const {
    using W = Accumulator<T>;
    const std::span<W> sums = scratch_of<W>(comm_, 0, values.size());
    widen_into(values, sums.data());
    for_each_child_up([&](std::size_t child, std::size_t) {
      const std::span<W> below = scratch_of<W>(comm_, 1, values.size());
      receive(comm_, std::as_writable_bytes(below), rank_of(child));
      combine_into(op, sums, below.data());
    });
    if (number_ != 0) send(comm_, std::as_bytes(sums), parent());
    return sums;
  }

  const C& comm_;
  std::size_t root_;
  std::size_t number_;  // of this member, counted from the root
};

}  // namespace detail

/// Values go up a binomial tree to member 0 and back: 2 log2(size) messages one after another, each with all values. For
/// few bytes between many members. Works between members that pass messages.
///
/// Values are summed in the order of the tree, so the bits differ from those of other policies; they are the same on every
/// member and in every run.
struct TreeAllReduce {
  static constexpr std::string_view name = "TreeAllReduce";
  static constexpr bool sums_in_rank_order = false;

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = PassesMessages<C>;

  template <class C>
  using On = detail::MessageCollectives<C, detail::MessageTree<C>>;
};

}  // namespace dist
