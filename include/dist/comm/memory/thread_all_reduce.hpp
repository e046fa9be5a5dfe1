#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/memory/shared_memory_collectives.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// All-reduce between replicas that see each other's memory, in place and without staging: each replica reduces one
/// shard of the elements straight from all replicas' operands and writes it straight into them, so every byte is read
/// and written once. A few elements travel with the announcement instead, in one step.
struct ThreadAllReduce {
  static constexpr std::string_view name = "ThreadAllReduce";

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = SharesMemory<C>&& ExchangesSmall<C>;

  template <class C>
  class On : public SharedMemoryCollectives<C> {
    static_assert(fits<C>,
                  "ThreadAllReduce needs replicas in one address space: use a communicator that models SharesMemory "
                  "and ExchangesSmall, such as ThreadCommunicator");

   public:
    using SharedMemoryCollectives<C>::SharedMemoryCollectives;

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    template <class T, ReduceOp<T> Op>
    void all_reduce(Op op, std::span<T> values) const {
      const CollectiveCall call{
          .operation = "all_reduce", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>};
      if (values.size_bytes() <= C::exchange_capacity) {
        comm_.exchange(call, std::span<const T>{values});
        detail::reduce_members(op, comm_, values, [&](std::size_t rank) { return comm_.template received<T>(rank); });
        return;
      }
      const detail::Borrowed loan{comm_};
      comm_.publish(call, {.read = values.data(), .write = values.data()});
      if (comm_.size() > 1) detail::reduce_in_place<T>(op, comm_, my_shard<T>(values.size()));
      comm_.barrier();
    }

    /// Each block of this replica's shard is reduced, updates the replica's own elements while it is in the cache, and
    /// these are copied into the mirrors of the others.
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op op, std::span<const T> gradient, std::span<T> mirror, const Update& update) const {
      const detail::Borrowed loan{comm_};
      comm_.publish(
          {.operation = "reduce_and_apply", .reduction = Op::name, .elements = mirror.size(), .dtype = dtype_name<T>},
          {.read = gradient.data(), .write = mirror.data()});
      const bool past_caches = detail::exceeds_caches<T>(mirror.size());
      detail::reduce_range<T>(op, comm_, my_shard<T>(gradient.size()),
                              [&](std::size_t first, std::span<const T> reduced) DIST_INLINE_LAMBDA {
                                const std::span<T> mine = mirror.subspan(first, reduced.size());
                                detail::update_block(update, first, mine, reduced);
                                give_to_others<T>(first, mine, past_caches);
                              });
      detail::finish_streams();
      comm_.barrier();
    }

    template <class T, ReduceOp<T> Op, class Use>
    void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
      const detail::Borrowed loan{comm_};
      comm_.publish(
          {.operation = "reduce_scatter", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>},
          {.read = values.data()});
      detail::reduce_range<T>(op, comm_, my_shard<T>(values.size()), use);
      comm_.barrier();
    }

    template <class T, ElementUpdate<T> Update>
    void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
      const detail::Borrowed loan{comm_};
      comm_.publish({.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>},
                    {.write = mirror.data()});
      const IndexRange shard = my_shard<T>(mirror.size());
      const bool past_caches = detail::exceeds_caches<T>(mirror.size());
      detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
        for (std::size_t first = shard.begin; first < shard.end; first += detail::block_elements<T>) {
          const std::span<T> mine = mirror.subspan(first, std::min(detail::block_elements<T>, shard.end - first));
          detail::update_block(update, first, mine, gradients.subspan(first, mine.size()));
          give_to_others<T>(first, mine, past_caches);
        }
      });
      detail::finish_streams();
      comm_.barrier();
    }

   private:
    /// Copies this replica's elements from `first` on into those that the others lend.
    template <class T>
    DIST_ALWAYS_INLINE void give_to_others(std::size_t first, std::span<const T> mine, bool past_caches) const {
      detail::copy_to_others<T>(
          comm_.size(), [&](std::size_t rank) { return comm_.template peer_to_write<T>(rank) + first; }, mine,
          past_caches);
    }
    template <class T>
    [[nodiscard]] IndexRange my_shard(std::size_t elements) const noexcept {
      return shard_of(elements, comm_.rank(), comm_.size(), cache_line / sizeof(T));
    }

    using SharedMemoryCollectives<C>::comm_;
  };
};

/// The name until 0.3.
using SharedMemoryAllReduce = ThreadAllReduce;

}  // namespace dist
