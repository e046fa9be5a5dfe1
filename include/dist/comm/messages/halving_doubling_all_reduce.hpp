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
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>

namespace dist {

namespace detail {

/// Recursive halving and doubling by messages, an algorithm of MessageCollectives. Member r orders the parts cyclically
/// by owner: r, r + 1, …. In each round of a reduction it sends the farther half of its parts to the member at that
/// distance, and combines received parts with the nearer half, until only its own part is left. A gather takes the
/// reverse way. Halves are rounded, so any number of members works.
template <class C>
class MessageDoubling : public ShardedReduction<MessageDoubling<C>, C> {
 public:
  using ShardedReduction<MessageDoubling, C>::ShardedReduction;

  /// Sends few bytes down a tree; scatters and gathers many.
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

  /// Calls `use` with blocks of the reduction of this member's shard. For many elements.
  void reduce_shards(const Reduction& reduction, std::span<const std::byte> values, UseReduced use) const {
    const std::size_t wide_size = reduction.wide_size;
    const std::size_t count = values.size() / reduction.size;
    const auto part = [&](std::size_t rank) { return message_shard(count, rank, comm_.size()); };
    const Order order{part, comm_.rank(), comm_.size()};
    const std::span<std::byte> sums = scratch_of<std::byte>(comm_, 0, count * wide_size);
    const std::size_t from_mine = count - order.first();
    reduction.widen(sums.data(), values.data() + order.first() * reduction.size, from_mine);
    reduction.widen(sums.data() + from_mine * wide_size, values.data(), order.first());
    const Halves halves{comm_.size()};
    for (std::size_t round = 0; round < halves.rounds(); ++round) {
      const std::size_t distance = halves.after(round);
      const std::size_t kept = halves.before(round) - distance;  // parts that are combined; the same number is sent
      const IndexRange farther{order.elements(distance), order.elements(halves.before(round))};
      const std::span<std::byte> received = scratch_of<std::byte>(comm_, 1, order.elements(kept) * wide_size);
      send_and_receive(comm_, sums.subspan(farther.begin * wide_size, farther.size() * wide_size), right_by(distance),
                       received, left_by(distance));
      reduction.partial->combine(sums.data(), received.data(), order.elements(kept));
    }
    use_finished(reduction, part(comm_.rank()), sums.data(), nullptr, comm_.size(), use);
  }

 private:
  using ShardedReduction<MessageDoubling, C>::comm_;

  /// The number of parts of a member before and after each round: halved, rounded up.
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

  /// Consecutive parts in the order of the member with part `mine`.
  class Order {
   public:
    Order(FunctionRef<IndexRange(std::size_t)> part, std::size_t mine, std::size_t members)
        : part_(part), mine_(mine), members_(members), first_(part(mine).begin), end_(part(members - 1).end) {}

    /// The first element of its part.
    [[nodiscard]] std::size_t first() const noexcept { return first_; }
    /// The number of elements in the first `parts` parts.
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

  /// Gathers the parts; this member has part `mine`. Part numbers follow ranks cyclically.
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
      const std::size_t known = halves.before(round) - distance;  // parts that are sent; the same number is received
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
/// MPICH", IJHPCA 19(1), 2005, section 4.4; for any number of members as in Träff: "Optimal, Non-pipelined
/// Reduce-scatter and Allreduce Algorithms", 2024): the bytes of a ring in log2(size) rounds each way. For medium
/// sizes; for large ones a ring copies less, and combines while it waits. For members that pass messages.
///
/// Each part is summed in its own order, so the last bits may differ from other policies; they are the same on every
/// member and in every run.
struct HalvingDoublingAllReduce {
  static constexpr std::string_view name = "HalvingDoublingAllReduce";
  static constexpr bool sums_in_rank_order = false;

  /// True for communicators that the policy supports.
  template <class C>
  static constexpr bool fits = PassesMessages<C>;

  template <class C>
  using On = detail::MessageCollectives<C, detail::MessageDoubling<C>>;
};

}  // namespace dist
