#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/message_collectives.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>

namespace dist {

namespace detail {

/// A binomial tree of members that pass messages, an algorithm of MessageCollectives. Members are numbered from the
/// root. Number n is the root of the subtree n to n + 2^k - 1, where 2^k is the lowest set bit of n, limited by the
/// number of members; its children are n + 2^j for all j < k.
template <class C>
class MessageTree : public ReducesByRecords {
 public:
  explicit MessageTree(const C& comm, std::size_t root = 0)
      : comm_(comm), root_(root), number_((comm.rank() + comm.size() - root) % comm.size()) {}

  /// Sends all values of member `root` down its tree.
  void broadcast(std::size_t root, Elements values) const {
    const std::span<std::byte> bytes = values.bytes({0, values.count()});
    MessageTree{comm_, root}.go_down([&](std::size_t, std::size_t) { return bytes; });
  }
  /// Sends every member its part of the root's values; other parts may change.
  void scatter(Elements all, FunctionRef<IndexRange(std::size_t)> part_of_number) const {
    go_down([&](std::size_t first, std::size_t end) { return all.bytes(parts(part_of_number, first, end)); });
  }
  /// Collects the parts at the root, and sends all of them down.
  void gather(Elements all, FunctionRef<IndexRange(std::size_t)> part) const {
    const auto bytes = [&](std::size_t first, std::size_t end) { return all.bytes(parts(part, first, end)); };
    for_each_child_up([&](std::size_t child, std::size_t end) { receive(comm_, bytes(child, end), rank_of(child)); });
    if (number_ != 0) send(comm_, bytes(number_, subtree_end()), parent());
    broadcast(root_, all);
  }

  void all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const {
    const std::byte* const sums = reduce_up(reduction, values);
    if (number_ == 0)
      reduction.finish(values.data(), sums, nullptr, values.size() / reduction.size,
                       reduction.finished_for(comm_.size()));
    broadcast(root_, Elements{values, reduction.size});
  }
  /// Reduces all values to the root, and sends each shard down to its owner.
  void reduce_scatter(const Reduction& reduction, std::span<const std::byte> values, UseReduced use) const {
    const std::size_t count = values.size() / reduction.size;
    std::byte* const sums = reduce_up(reduction, values);
    const auto shard = [&](std::size_t rank) { return message_shard(count, rank, comm_.size()); };
    scatter(Elements{{sums, count * reduction.wide_size}, reduction.wide_size},
            [&](std::size_t number) { return shard(rank_of(number)); });
    const IndexRange mine = shard(comm_.rank());
    use_finished(reduction, mine, sums + mine.begin * reduction.wide_size, nullptr, comm_.size(), use);
  }

 private:
  [[nodiscard]] std::size_t rank_of(std::size_t number) const noexcept { return (number + root_) % comm_.size(); }
  /// The size of this member's subtree, without the limit by the number of members.
  [[nodiscard]] std::size_t reach() const noexcept {
    return number_ == 0 ? std::bit_ceil(comm_.size()) : number_ & (~number_ + 1);
  }
  [[nodiscard]] std::size_t subtree_end() const noexcept { return std::min(number_ + reach(), comm_.size()); }
  [[nodiscard]] std::size_t parent() const noexcept { return rank_of(number_ - reach()); }
  [[nodiscard]] static IndexRange parts(FunctionRef<IndexRange(std::size_t)> part, std::size_t first, std::size_t end) {
    return {part(first).begin, part(end - 1).end};
  }

  /// Calls `visit(child, end)` for each child, nearest first, where `end` is the end of its subtree.
  template <class Visit>
  void for_each_child_up(Visit&& visit) const {
    for (std::size_t distance = 1; distance < reach() && number_ + distance < comm_.size(); distance *= 2)
      visit(number_ + distance, std::min(number_ + 2 * distance, comm_.size()));
  }
  /// Sends values down the tree, first to the largest subtree; `bytes(first, end)` are the bytes for these members.
  template <class Bytes>
  void go_down(Bytes&& bytes) const {
    if (number_ != 0) receive(comm_, bytes(number_, subtree_end()), parent());
    for (std::size_t distance = reach() / 2; distance > 0; distance /= 2)
      if (const std::size_t child = number_ + distance; child < comm_.size())
        send(comm_, bytes(child, std::min(child + distance, comm_.size())), rank_of(child));
  }

  /// Returns combined, unfinished values: of all members on the root, of the subtree on others. Members combine their
  /// own values with their children's, nearest first, so that the bits are the same in every run.
  std::byte* reduce_up(const Reduction& reduction, std::span<const std::byte> values) const {
    const std::size_t count = values.size() / reduction.size;
    const std::span<std::byte> sums = scratch_of<std::byte>(comm_, 0, count * reduction.wide_size);
    reduction.widen(sums.data(), values.data(), count);
    for_each_child_up([&](std::size_t child, std::size_t) {
      const std::span<std::byte> below = scratch_of<std::byte>(comm_, 1, sums.size());
      receive(comm_, below, rank_of(child));
      reduction.partial->combine(sums.data(), below.data(), count);
    });
    if (number_ != 0) send(comm_, sums, parent());
    return sums.data();
  }

  const C& comm_;
  std::size_t root_;
  std::size_t number_;  // of this member, from the root
};

}  // namespace detail

/// An all-reduce in a binomial tree to member 0 and back: 2 log2(size) steps, each with all values. For few bytes and
/// many members that pass messages.
///
/// Values are summed in tree order, so the last bits may differ from other policies; they are the same on every member
/// and in every run.
struct TreeAllReduce {
  static constexpr std::string_view name = "TreeAllReduce";
  static constexpr bool sums_in_rank_order = false;

  /// True for communicators that the policy supports.
  template <class C>
  static constexpr bool fits = PassesMessages<C>;

  template <class C>
  using On = detail::MessageCollectives<C, detail::MessageTree<C>>;
};

}  // namespace dist
