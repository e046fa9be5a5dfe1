#pragma once

#include <cstddef>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/index_range.hpp>

namespace dist::detail {

/// The shard of member `rank`: the same in every algorithm, for all types.
[[nodiscard]] inline IndexRange message_shard(std::size_t elements, std::size_t rank, std::size_t members) noexcept {
  constexpr std::size_t granule = cache_line;  // this many elements of any type fill whole cache lines
  return shard_of(elements, rank, members, granule);
}

/// Work memory of the communicator, kept between calls.
template <class T, PassesMessages C>
[[nodiscard]] std::span<T> scratch_of(const C& comm, std::size_t which, std::size_t elements) {
  return {reinterpret_cast<T*>(comm.scratch(which, elements * sizeof(T))), elements};
}

/// Reductions in which each member reduces its shard, and the shards are gathered. `Algorithm` has `gather(all, part)`
/// and, for many elements, `reduce_shards(reduction, values, use)`. Few elements are gathered by all members and
/// combined in rank order, which halves the number of steps.
template <class Algorithm, PassesMessages C>
class ShardedReduction : public ReducesByRecords {
 public:
  explicit ShardedReduction(const C& comm) : comm_(comm) {}

  void all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const {
    const std::size_t size = reduction.size;
    const std::size_t elements = values.size() / size;
    if (is_small(values.size()))
      return reduction.reduce(gathered(values), {0, elements}, values.data(), reduction.finished_for(comm_.size()));
    algorithm().reduce_shards(reduction, values, [&](std::size_t first, std::span<const std::byte> reduced) {
      std::copy(reduced.begin(), reduced.end(), values.data() + first * size);
    });
    algorithm().gather(Elements{values, size},
                       [&](std::size_t rank) { return message_shard(elements, rank, comm_.size()); });
  }

  /// Calls `use` with blocks of the reduction of this member's shard.
  void reduce_scatter(const Reduction& reduction, std::span<const std::byte> values, UseReduced use) const {
    if (!is_small(values.size())) return algorithm().reduce_shards(reduction, values, use);
    const auto operands = gathered(values);
    const std::size_t most = block_bytes / reduction.size;
    const IndexRange mine = message_shard(values.size() / reduction.size, comm_.rank(), comm_.size());
    alignas(cache_line) std::byte block[block_bytes];
    for (std::size_t first = mine.begin; first < mine.end; first += most) {
      const std::size_t end = std::min(first + most, mine.end);
      reduction.reduce(operands, {first, end}, block, reduction.finished_for(comm_.size()));
      use(first, std::span<const std::byte>{block, (end - first) * reduction.size});
    }
  }

 protected:
  const C& comm_;

 private:
  /// Up to this many bytes in total, each member reduces everything.
  static constexpr std::size_t small_bytes = std::size_t{16} << 10;

  [[nodiscard]] const Algorithm& algorithm() const noexcept { return static_cast<const Algorithm&>(*this); }
  [[nodiscard]] bool is_small(std::size_t bytes) const noexcept { return bytes * comm_.size() <= small_bytes; }

  [[nodiscard]] OperandsOfMembers<const std::byte*> gathered(std::span<const std::byte> values) const {
    const std::size_t bytes = values.size();
    const std::span<std::byte> all = scratch_of<std::byte>(comm_, 0, bytes * comm_.size());
    std::copy(values.begin(), values.end(), all.data() + comm_.rank() * bytes);
    algorithm().gather(Elements{all}, [&](std::size_t rank) { return IndexRange{rank * bytes, (rank + 1) * bytes}; });
    return {comm_.size(), comm_.size(), [&](std::size_t rank) { return all.data() + rank * bytes; }};
  }
};

}  // namespace dist::detail
