#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/memory/shared_memory_collectives.hpp>
#include <dist/comm/messages/declarations.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

namespace detail {

/// Into how many parts a ring divides what it reduces, one after the other: enough that what a member passes on at a
/// time is at most 4 MiB, but at most two (spec H18).
[[nodiscard]] constexpr std::size_t ring_subdivisions(std::size_t bytes, std::size_t members) {
  constexpr std::size_t most_bytes = std::size_t{4} << 20;
  return bytes > most_bytes * members ? 2 : 1;
}

}  // namespace detail

/// The ring algorithm (Patarasu, Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009;
/// spec H18): in size - 1 steps each member adds its own values to what its left neighbour has summed of one chunk, and
/// in as many steps the finished chunks go round. Every member talks to its neighbour only, which is what a network
/// wants; between replicas in one memory ThreadAllReduce is faster. Members that share memory read their left
/// neighbour's, others pass messages.
///
/// Each chunk is summed in the order of the ring, so the bits differ from those of other policies; they are the same on
/// every replica and in every run.
struct RingAllReduce {
  static constexpr std::string_view name = "RingAllReduce";
  static constexpr bool sums_in_rank_order = false;

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = SharesMemory<C> || PassesMessages<C>;

  template <class C>
  class On {
    static_assert(
        fits<C>,
        "RingAllReduce needs members that reach each other: use a communicator that models SharesMemory, such "
        "as ThreadCommunicator, or PassesMessages, such as mpi::Communicator");
  };

  template <class C>
    requires(PassesMessages<C> && !SharesMemory<C>)
  class On<C> : public detail::MessageCollectives<C, detail::MessageRing<C>> {
   public:
    using detail::MessageCollectives<C, detail::MessageRing<C>>::MessageCollectives;

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      return On{this->comm_.with_timeout(timeout)};
    }
  };

  template <SharesMemory C>
  class On<C> : public SharedMemoryCollectives<C> {
   public:
    using SharedMemoryCollectives<C>::SharedMemoryCollectives;

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    template <class T, ReduceOp<T> Op>
    void all_reduce(Op op, std::span<T> values) const {
      const CollectiveCall call{
          .operation = "all_reduce", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>};
      if constexpr (std::same_as<Accumulator<T>, T>) {
        const detail::Borrowed loan{comm_};
        reduce_chunks(call, op, values);
        pass_round(call, values, values.size_bytes());
        comm_.barrier();
      } else {
        AlignedBuffer<Accumulator<T>> work = widened(std::span<const T>{values});
        const std::span<Accumulator<T>> wide{work.data(), values.size()};
        const detail::Borrowed loan{comm_};
        reduce_chunks(call, op, wide);
        pass_round(call, wide, wide.size_bytes());
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(wide[i]);
        comm_.barrier();
      }
    }

    /// Each replica updates its own elements by its chunks of the reduced gradients, and the results go round.
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op op, std::span<const T> gradient, std::span<T> mirror, const Update& update) const {
      const CollectiveCall call{
          .operation = "reduce_and_apply", .reduction = Op::name, .elements = mirror.size(), .dtype = dtype_name<T>};
      AlignedBuffer<Accumulator<T>> work = widened(gradient);
      const std::span<Accumulator<T>> wide{work.data(), gradient.size()};
      const detail::Borrowed loan{comm_};
      reduce_chunks(call, op, wide);
      for_each_own_block<T>(wide, [&](std::size_t first, std::span<const T> reduced) {
        detail::update_range(update, first, mirror.subspan(first, reduced.size()), reduced);
      });
      pass_round(call, mirror, wide.size_bytes());
      comm_.barrier();
    }

    template <class T, ReduceOp<T> Op, class Use>
    void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
      const CollectiveCall call{
          .operation = "reduce_scatter", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>};
      AlignedBuffer<Accumulator<T>> work = widened(values);
      const std::span<Accumulator<T>> wide{work.data(), values.size()};
      const detail::Borrowed loan{comm_};
      reduce_chunks(call, op, wide);
      for_each_own_block<T>(wide, use);
      comm_.barrier();
    }

    template <class T, ElementUpdate<T> Update>
    void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
      const CollectiveCall call{.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>};
      const std::size_t bytes_reduced = mirror.size() * sizeof(Accumulator<T>);
      const detail::Borrowed loan{comm_};
      comm_.publish(call, {});
      for_each_part(bytes_reduced, mirror.size(), [&](IndexRange part) {
        const IndexRange mine = chunk(part, comm_.rank() + 1);
        detail::update_range(update, mine.begin, mirror.subspan(mine.begin, mine.size()),
                             gradients.subspan(mine.begin, mine.size()));
      });
      pass_round(call, mirror, bytes_reduced);
      comm_.barrier();
    }

   private:
    using SharedMemoryCollectives<C>::comm_;

    /// So many elements of any type fill whole cache lines.
    static constexpr std::size_t granule = cache_line;

    [[nodiscard]] std::size_t left() const noexcept { return (comm_.rank() + comm_.size() - 1) % comm_.size(); }
    [[nodiscard]] IndexRange chunk(IndexRange part, std::size_t number) const noexcept {
      const IndexRange within = shard_of(part.size(), number % comm_.size(), comm_.size(), granule);
      return {part.begin + within.begin, part.begin + within.end};
    }
    template <class Visit>
    void for_each_part(std::size_t bytes, std::size_t elements, Visit&& visit) const {
      const std::size_t parts = detail::ring_subdivisions(bytes, comm_.size());
      for (std::size_t part = 0; part < parts; ++part) visit(shard_of(elements, part, parts, granule));
    }

    /// Calls `use(first, reduced)` with blocks of this member's finished chunks of `work`, rounded to T.
    template <class T, class Use>
    void for_each_own_block(std::span<const Accumulator<T>> work, Use&& use) const {
      for_each_part(work.size_bytes(), work.size(), [&](IndexRange part) {
        const IndexRange mine = chunk(part, comm_.rank() + 1);
        if constexpr (std::same_as<Accumulator<T>, T>) {
          if (mine.size() != 0) use(mine.begin, work.subspan(mine.begin, mine.size()));
        } else {
          T block[detail::block_elements<T>];
          for (std::size_t first = mine.begin; first < mine.end; first += detail::block_elements<T>) {
            const std::size_t count = std::min(detail::block_elements<T>, mine.end - first);
            for (std::size_t i = 0; i < count; ++i) block[i] = static_cast<T>(work[first + i]);
            use(first, std::span<const T>{block, count});
          }
        }
      });
    }

    template <class T>
    [[nodiscard]] static AlignedBuffer<Accumulator<T>> widened(std::span<const T> values) {
      AlignedBuffer<Accumulator<T>> wide(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) wide.data()[i] = static_cast<Accumulator<T>>(values[i]);
      return wide;
    }

    /// Sums go round: afterwards chunk rank + 1 of `work` is complete and finished here. Operands are published anew in
    /// each step, so that no member leaves while its neighbour reads.
    template <class Op, class W>
    void reduce_chunks(const CollectiveCall& call, Op op, std::span<W> work) const {
      comm_.publish(call, {.read = work.data()});
      for (std::size_t step = 0; step + 1 < comm_.size(); ++step) {
        const W* const theirs = comm_.template peer<W>(left());
        for_each_part(work.size_bytes(), work.size(), [&](IndexRange part) {
          const IndexRange range = chunk(part, comm_.rank() + 2 * comm_.size() - 1 - step);
          for (std::size_t i = range.begin; i < range.end; ++i) work[i] = op(theirs[i], work[i]);
        });
        comm_.publish(call, {.read = work.data()});
      }
      for_each_part(work.size_bytes(), work.size(), [&](IndexRange part) {
        const IndexRange range = chunk(part, comm_.rank() + 1);
        for (std::size_t i = range.begin; i < range.end; ++i) work[i] = Op::finish(work[i], comm_.size());
      });
    }

    /// Finished chunks go round. `bytes` are those of what was reduced, which say how it is divided.
    template <class T>
    void pass_round(const CollectiveCall& call, std::span<T> result, std::size_t bytes) const {
      for (std::size_t step = 0; step + 1 < comm_.size(); ++step) {
        comm_.publish(call, {.read = result.data()});
        const T* const theirs = comm_.template peer<T>(left());
        if (theirs == result.data()) continue;  // one memory for all
        for_each_part(bytes, result.size(), [&](IndexRange part) {
          const IndexRange range = chunk(part, comm_.rank() + comm_.size() - step);
          std::copy_n(theirs + range.begin, range.size(), result.data() + range.begin);
        });
      }
    }
  };
};

}  // namespace dist
