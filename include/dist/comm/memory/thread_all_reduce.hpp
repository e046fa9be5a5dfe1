#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/memory_collectives.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/streaming.hpp>

namespace dist {

/// In-place all-reduce of replicas that access each other's memory, without staging: each replica reduces one shard of
/// all operands and writes it into all, so each byte is read and written once. A few elements are exchanged in one
/// step, with the announcement.
struct ThreadAllReduce {
  static constexpr std::string_view name = "ThreadAllReduce";

  /// True if the policy supports communicator `C`.
  template <class C>
  static constexpr bool fits = SharesMemory<C>&& ExchangesSmall<C>;

  /// The collectives of one replica, a member of `C`.
  template <class C>
  class On : public SharedMemoryCollectives<C>, public detail::OnBytes<On<C>> {
    static_assert(fits<C>,
                  "ThreadAllReduce needs replicas in one address space: use a communicator that models SharesMemory "
                  "and ExchangesSmall, such as ThreadCommunicator");

   public:
    using SharedMemoryCollectives<C>::SharedMemoryCollectives;

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    template <class T, ReduceOp<T> Op>
    void all_reduce([[maybe_unused]] Op op, std::span<T> values) const {
      if constexpr (!detail::has_levels<C> && std::same_as<Accumulator<T>, T>)
        if (values.size_bytes() <= C::exchange_capacity) {
          comm_.exchange(
              {.operation = "all_reduce", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>},
              std::span<const T>{values});
          return detail::reduce_block(op, comm_.size(), values,
                                      [&](std::size_t rank) { return comm_.template received<T>(rank); });
        }
      all_reduce_bytes(reduction_of<T, Op>, std::as_writable_bytes(values));
    }
    void all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const;

    /// Reduces this replica's shard by blocks, updates its own elements in the cache, and copies them to the other
    /// mirrors.
    void reduce_and_apply_bytes(const Reduction& reduction, std::span<const std::byte> gradient,
                                std::span<std::byte> mirror, detail::UseReduced update) const;
    void reduce_scatter_bytes(const Reduction& reduction, std::span<const std::byte> values,
                              detail::UseReduced use) const;
    void update_shards_bytes(const CollectiveCall& call, std::size_t size, std::span<std::byte> mirror,
                             detail::FunctionRef<void(IndexRange)> update) const;

   private:
    /// Copies `mine` to byte `first` of the memory that each other replica lends.
    void give_to_others(std::size_t first, std::span<const std::byte> mine, bool past_caches) const {
      detail::copy_to_others<std::byte>(
          comm_.size(), [&](std::size_t rank) { return comm_.template peer_to_write<std::byte>(rank) + first; }, mine,
          past_caches);
    }
    /// Returns this replica's shard of elements of `size` bytes.
    [[nodiscard]] IndexRange my_shard(std::size_t elements, std::size_t size) const noexcept {
      return shard_of(elements, comm_.rank(), comm_.size(), cache_line / size);
    }

    using SharedMemoryCollectives<C>::comm_;
  };
};

template <class C>
void ThreadAllReduce::On<C>::all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const {
  const std::size_t elements = values.size() / reduction.size;
  const CollectiveCall call = reduction.call("all_reduce", elements);
  if (values.size() <= C::exchange_capacity) {
    comm_.exchange(call, std::span<const std::byte>{values});
    const detail::OperandsOfMembers<const std::byte*> received{
        comm_.size(), detail::members_per_group(comm_),
        [&](std::size_t rank) { return comm_.template received<std::byte>(rank); }};
    return reduction.reduce(received, {0, elements}, values.data(), reduction.finished_for(comm_.size()));
  }
  const detail::Borrowed loan{comm_};
  comm_.publish(call, {.read = values.data(), .write = values.data()});
  if (comm_.size() > 1) detail::reduce_in_place(reduction, comm_, my_shard(elements, reduction.size));
  comm_.barrier();
}

template <class C>
void ThreadAllReduce::On<C>::reduce_and_apply_bytes(const Reduction& reduction, std::span<const std::byte> gradient,
                                                    std::span<std::byte> mirror, detail::UseReduced update) const {
  const std::size_t size = reduction.size;
  const detail::Borrowed loan{comm_};
  comm_.publish(reduction.call("reduce_and_apply", mirror.size() / size),
                {.read = gradient.data(), .write = mirror.data()});
  const bool past_caches = detail::exceeds_caches<std::byte>(mirror.size());
  detail::reduce_range(reduction, comm_, my_shard(gradient.size() / size, size),
                       [&](std::size_t first, std::span<const std::byte> reduced) {
                         update(first, reduced);
                         give_to_others(first * size, mirror.subspan(first * size, reduced.size()), past_caches);
                       });
  detail::finish_streams();
  comm_.barrier();
}
template <class C>
void ThreadAllReduce::On<C>::reduce_scatter_bytes(const Reduction& reduction, std::span<const std::byte> values,
                                                  detail::UseReduced use) const {
  const std::size_t elements = values.size() / reduction.size;
  const detail::Borrowed loan{comm_};
  comm_.publish(reduction.call("reduce_scatter", elements), {.read = values.data()});
  detail::reduce_range(reduction, comm_, my_shard(elements, reduction.size), use);
  comm_.barrier();
}
template <class C>
void ThreadAllReduce::On<C>::update_shards_bytes(const CollectiveCall& call, std::size_t size,
                                                 std::span<std::byte> mirror,
                                                 detail::FunctionRef<void(IndexRange)> update) const {
  const detail::Borrowed loan{comm_};
  comm_.publish(call, {.write = mirror.data()});
  const IndexRange shard = my_shard(call.elements, size);
  const bool past_caches = detail::exceeds_caches<std::byte>(mirror.size());
  for (std::size_t first = shard.begin; first < shard.end; first += detail::block_bytes / size) {
    const IndexRange block{first, std::min(first + detail::block_bytes / size, shard.end)};
    update(block);
    give_to_others(first * size, mirror.subspan(first * size, block.size() * size), past_caches);
  }
  detail::finish_streams();
  comm_.barrier();
}

/// Former name, until version 0.3.
using SharedMemoryAllReduce = ThreadAllReduce;

}  // namespace dist

#ifdef DIST_COMPILED
#include <dist/comm/thread/communicator.hpp>
extern template class dist::SharedMemoryCollectives<dist::ThreadCommunicator>;
extern template class dist::ThreadAllReduce::On<dist::ThreadCommunicator>;
#define DIST_THREAD_ALL_REDUCE(KIND, T, Op) \
  KIND template void dist::ThreadAllReduce::On<dist::ThreadCommunicator>::all_reduce(dist::Op, std::span<T>) const;
DIST_REDUCTIONS(DIST_THREAD_ALL_REDUCE, extern)
#endif
