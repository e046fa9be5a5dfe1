#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

namespace dist::detail {

/// The part of so many elements that member `rank` reduces and updates: the same in every algorithm, for all types.
[[nodiscard]] inline IndexRange message_shard(std::size_t elements, std::size_t rank, std::size_t members) noexcept {
  constexpr std::size_t granule = cache_line;  // so many elements of any type fill whole cache lines
  return shard_of(elements, rank, members, granule);
}

/// Work memory of the communicator, which keeps it from call to call.
template <class T, PassesMessages C>
[[nodiscard]] std::span<T> scratch_of(const C& comm, std::size_t which, std::size_t elements) {
  return {reinterpret_cast<T*>(comm.scratch(which, elements * sizeof(T))), elements};
}

/// wide[i] = values[i]
template <class T>
void widen_into(std::span<const T> values, Accumulator<T>* wide) {
  with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
    for (std::size_t i = 0; i < values.size(); ++i) wide[i] = static_cast<Accumulator<T>>(values[i]);
  });
}
/// sums[i] = sums[i] (+) values[i]
template <class Op, class W, class T>
void combine_into(Op op, std::span<W> sums, const T* values) {
  with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
    W* DIST_RESTRICT combined = sums.data();
    const T* DIST_RESTRICT others = values;
    for (std::size_t i = 0; i < sums.size(); ++i) combined[i] = op(combined[i], static_cast<W>(others[i]));
  });
}
/// Calls `use(first + at, reduced)` for blocks of the sums of so many members, finished and rounded.
template <class T, class Op, class Use>
void finish_sums(Op, std::size_t members, std::span<const Accumulator<T>> sums, std::size_t first, Use&& use) {
  with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
    alignas(cache_line) T block[block_elements<T>];
    for (std::size_t at = 0; at < sums.size(); at += block_elements<T>) {
      const std::size_t elements = std::min(block_elements<T>, sums.size() - at);
      for (std::size_t i = 0; i < elements; ++i) block[i] = static_cast<T>(Op::finish(sums[at + i], members));
      use(first + at, std::span<const T>{block, elements});
    }
  });
}

/// Reductions of an algorithm in which each member reduces its shard, and shards are gathered. `Algorithm` has
/// `gather(all, part)` and, for many elements, `reduce_shards(op, values, use)`. Of few elements all members get those of
/// all and combine them in rank order, which halves the number of steps.
template <class Algorithm, PassesMessages C>
class ShardedReduction {
 public:
  explicit ShardedReduction(const C& comm) : comm_(comm) {}

  template <class T, class Op>
  void all_reduce(Op op, std::span<T> values) const {
    const auto keep = [&](std::size_t first, std::span<const T> reduced) {
      std::copy(reduced.begin(), reduced.end(), values.data() + first);
    };
    if (is_small<T>(values.size())) return reduce_together(op, std::span<const T>{values}, {0, values.size()}, keep);
    algorithm().reduce_shards(op, std::span<const T>{values}, keep);
    algorithm().gather(Elements{values},
                       [&](std::size_t rank) { return message_shard(values.size(), rank, comm_.size()); });
  }

  /// Calls `use(first, reduced)` with blocks of the reduction of this member's shard.
  template <class T, class Op, class Use>
  void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
    if (is_small<T>(values.size()))
      reduce_together(op, values, message_shard(values.size(), comm_.rank(), comm_.size()), use);
    else
      algorithm().reduce_shards(op, values, use);
  }

 protected:
  const C& comm_;

 private:
  /// Up to this many bytes of all members together, all combine everything.
  static constexpr std::size_t small_bytes = std::size_t{16} << 10;

  [[nodiscard]] const Algorithm& algorithm() const noexcept { return static_cast<const Algorithm&>(*this); }
  template <class T>
  [[nodiscard]] bool is_small(std::size_t elements) const noexcept {
    return elements * comm_.size() <= small_bytes / sizeof(T);
  }

  /// The same for `range`, of which every member gets the elements of all.
  template <class T, class Op, class Use>
  void reduce_together(Op op, std::span<const T> values, IndexRange range, Use&& use) const {
    const std::span<T> all_values = scratch_of<T>(comm_, 0, values.size() * comm_.size());
    std::copy(values.begin(), values.end(), all_values.data() + comm_.rank() * values.size());
    algorithm().gather(Elements{all_values}, [&](std::size_t rank) {
      return IndexRange{rank * values.size(), (rank + 1) * values.size()};
    });
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      alignas(cache_line) T block[block_elements<T>];
      for (std::size_t first = range.begin; first < range.end; first += block_elements<T>) {
        const std::span<T> reduced{block, std::min(block_elements<T>, range.end - first)};
        reduce_block(op, comm_.size(), reduced,
                     [&](std::size_t rank) { return all_values.data() + rank * values.size() + first; });
        use(first, std::span<const T>{reduced});
      }
    });
  }
};

}  // namespace dist::detail
