#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/message_collectives.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

namespace detail {

/// Recursive halving and doubling of members that pass messages, an algorithm of MessageCollectives. Member r sees the
/// parts in the order of their owners r, r + 1, …, round and round. In each round of a reduction it sends the farther
/// half of what it has to the member at that distance and combines what another one sends with the nearer half, until
/// only its own part is left; a gather goes the same way back. Halves are rounded so that any number of members does.
template <class C>
class MessageDoubling : public ShardedReduction<MessageDoubling<C>, C> {
 public:
  using ShardedReduction<MessageDoubling, C>::ShardedReduction;

  /// Few bytes go down a tree; of many, each member gets a part, and parts are gathered.
  void broadcast(std::size_t root, Elements values) const {
    constexpr std::size_t few_bytes = std::size_t{16} << 10;
    const MessageTree<C> tree{comm_, root};
    if (values.count() * values.size() <= few_bytes) return tree.broadcast(root, values);
    const auto part = [&](std::size_t number) { return message_shard(values.count(), number, comm_.size()); };
    tree.scatter(values, part);
    gather_numbered(values, part, (comm_.rank() + comm_.size() - root) % comm_.size());
  }

  void gather(Elements all, FunctionRef<IndexRange(std::size_t)> part) const {
    gather_numbered(all, part, comm_.rank());
  }

  /// Calls `use(first, reduced)` with blocks of the reduction of this member's shard, of many elements.
  template <class T, class Op, class Use>
  void reduce_shards(Op op, std::span<const T> values, Use&& use) const {
    using W = Accumulator<T>;
    const auto part = [&](std::size_t rank) { return message_shard(values.size(), rank, comm_.size()); };
    const Order order{part, comm_.rank(), comm_.size()};
    const std::span<W> sums = scratch_of<W>(comm_, 0, values.size());
    const std::span<const T> from_mine = values.subspan(order.first());
    widen_into(from_mine, sums.data());
    widen_into(values.first(order.first()), sums.data() + from_mine.size());
    const Halves halves{comm_.size()};
    for (std::size_t round = 0; round < halves.rounds(); ++round) {
      const std::size_t distance = halves.after(round);
      const std::size_t kept = halves.before(round) - distance;  // parts that are combined; as many are sent
      const IndexRange farther{order.elements(distance), order.elements(halves.before(round))};
      const std::span<W> received = scratch_of<W>(comm_, 1, order.elements(kept));
      send_and_receive(comm_, std::as_bytes(sums.subspan(farther.begin, farther.size())), right_by(distance),
                       std::as_writable_bytes(received), left_by(distance));
      combine_into(op, sums.first(received.size()), received.data());
    }
    finish_sums<T>(op, comm_.size(), std::span<const W>{sums.first(order.elements(1))}, order.first(), use);
  }

 private:
  using ShardedReduction<MessageDoubling, C>::comm_;

  /// How many parts a member still has before and after each round: half of them, rounded up.
  class Halves {
   public:
    explicit Halves(std::size_t members) {
      for (std::size_t left = members; left > 1; left = (left + 1) / 2) before_[rounds_++] = left;
      before_[rounds_] = 1;
    }
    [[nodiscard]] std::size_t rounds() const noexcept { return rounds_; }
    [[nodiscard]] std::size_t before(std::size_t round) const noexcept { return before_[round]; }
    [[nodiscard]] std::size_t after(std::size_t round) const noexcept { return before_[round + 1]; }

   private:
    std::array<std::size_t, std::numeric_limits<std::size_t>::digits + 1> before_{};
    std::size_t rounds_ = 0;
  };

  /// Parts that follow each other, as the member sees them whose part is number `mine`.
  class Order {
   public:
    Order(FunctionRef<IndexRange(std::size_t)> part, std::size_t mine, std::size_t members)
        : part_(part), mine_(mine), members_(members), first_(part(mine).begin), end_(part(members - 1).end) {}

    /// Where its part begins.
    [[nodiscard]] std::size_t first() const noexcept { return first_; }
    /// How many elements the first `parts` parts have.
    [[nodiscard]] std::size_t elements(std::size_t parts) const {
      if (parts == 0) return 0;
      const std::size_t last = mine_ + parts - 1;
      return last < members_ ? part_(last).end - first_ : end_ - first_ + part_(last - members_).end;
    }

   private:
    FunctionRef<IndexRange(std::size_t)> part_;
    std::size_t mine_;
    std::size_t members_;
    std::size_t first_;
    std::size_t end_;
  };

  [[nodiscard]] std::size_t right_by(std::size_t steps) const noexcept { return (comm_.rank() + steps) % comm_.size(); }
  [[nodiscard]] std::size_t left_by(std::size_t steps) const noexcept {
    return (comm_.rank() + comm_.size() - steps) % comm_.size();
  }

  /// This member's part is number `mine`, and numbers are dealt in the order of the ranks, from any of them on.
  void gather_numbered(Elements all, FunctionRef<IndexRange(std::size_t)> part, std::size_t mine) const {
    const Order order{part, mine, comm_.size()};
    const std::size_t count = order.elements(comm_.size());
    const Elements turned{std::span{comm_.scratch(2, count * all.size()), count * all.size()}, all.size()};
    const auto copy = [](std::span<const std::byte> from, std::span<std::byte> to) {
      std::copy(from.begin(), from.end(), to.begin());
    };
    copy(all.bytes(part(mine)), turned.bytes({0, order.elements(1)}));
    const Halves halves{comm_.size()};
    for (std::size_t round = halves.rounds(); round-- > 0;) {
      const std::size_t distance = halves.after(round);
      const std::size_t known = halves.before(round) - distance;  // parts that are sent; as many are received
      send_and_receive(comm_, turned.bytes({0, order.elements(known)}), left_by(distance),
                       turned.bytes({order.elements(distance), order.elements(halves.before(round))}),
                       right_by(distance));
    }
    const std::size_t to_end = count - order.first();
    copy(turned.bytes({0, to_end}), all.bytes({order.first(), count}));
    copy(turned.bytes({to_end, count}), all.bytes({0, order.first()}));
  }
};

}  // namespace detail

/// Recursive halving and doubling (Thakur, Rabenseifner, Gropp: "Optimization of Collective Communication Operations in
/// MPICH", IJHPCA 19(1), 2005, section 4.4; for any number of members as in Träff: "Optimal, Non-pipelined Reduce-scatter
/// and Allreduce Algorithms", 2024): as many bytes as in a ring, in log2(size) rounds each way. For a medium number of
/// bytes; of many, a ring copies less and combines while it waits. Works between members that pass messages.
///
/// Each part is summed in an order of its own, so the bits differ from those of other policies; they are the same on every
/// member and in every run.
struct HalvingDoublingAllReduce {
  static constexpr std::string_view name = "HalvingDoublingAllReduce";
  static constexpr bool sums_in_rank_order = false;

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = PassesMessages<C>;

  template <class C>
  using On = detail::MessageCollectives<C, detail::MessageDoubling<C>>;
};

}  // namespace dist
