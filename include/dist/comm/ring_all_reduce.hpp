#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/memory_collectives.hpp>
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

/// The number of parts that a ring reduces one after another: 2 if a chunk would exceed 4 MiB, else 1 (spec H18).
[[nodiscard]] constexpr std::size_t ring_subdivisions(std::size_t bytes, std::size_t members) {
  constexpr std::size_t most_bytes = std::size_t{4} << 20;
  return bytes > most_bytes * members ? 2 : 1;
}

}  // namespace detail

/// The ring algorithm (Patarasu, Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009;
/// spec H18). In size - 1 steps each member adds its values to the partial sums of its left neighbour, one chunk per
/// step; in another size - 1 steps finished chunks travel around the ring. Members communicate only with neighbours,
/// which suits networks, by shared memory or messages. With shared memory ThreadAllReduce is faster.
///
/// Each chunk is summed in ring order, so the last bits may differ from other policies; they are the same on every
/// replica and in every run.
struct RingAllReduce {
  static constexpr std::string_view name = "RingAllReduce";
  static constexpr bool sums_in_rank_order = false;

  /// True for communicators that the policy supports.
  template <class C>
  static constexpr bool fits = SharesMemory<C> || PassesMessages<C>;

  /// The collectives of the policy; this primary template explains unsupported communicators.
  template <class C>
  class On {
    static_assert(
        fits<C>,
        "RingAllReduce needs members that reach each other: use a communicator that models SharesMemory, such "
        "as ThreadCommunicator, or PassesMessages, such as mpi::Communicator");
  };

  /// The collectives of members that pass messages.
  template <class C>
    requires(PassesMessages<C> && !SharesMemory<C>)
  class On<C> : public detail::MessageCollectives<C, detail::MessageRing<C>> {
   public:
    using detail::MessageCollectives<C, detail::MessageRing<C>>::MessageCollectives;

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      return On{this->comm_.with_timeout(timeout)};
    }
  };

  /// The collectives of members that share memory.
  template <SharesMemory C>
  class On<C> : public SharedMemoryCollectives<C>, public detail::OnBytes<On<C>> {
   public:
    using SharedMemoryCollectives<C>::SharedMemoryCollectives;

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    void all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const {
      const CollectiveCall call = reduction.call("all_reduce", values.size() / reduction.size);
      AlignedBuffer<std::byte> wide;
      if (reduction.widens()) wide = widened(reduction, values);
      const std::span<std::byte> work = reduction.widens() ? std::span<std::byte>{wide.data(), wide.size()} : values;
      const detail::Borrowed loan{comm_};
      reduce_chunks(call, reduction, work);
      for_each_own_chunk(work.size(), call.elements, [&](IndexRange mine) {
        if (reduction.widens() || reduction.finishes)
          reduction.finish(values.data() + mine.begin * reduction.size, work.data() + mine.begin * reduction.wide_size,
                           nullptr, mine.size(), reduction.finished_for(comm_.size()));
      });
      pass_round(call, reduction.size, values, work.size());
      comm_.barrier();
    }

    /// Each replica updates its elements by its chunks of the reduced gradients, and the results travel around the
    /// ring.
    void reduce_and_apply_bytes(const Reduction& reduction, std::span<const std::byte> gradient,
                                std::span<std::byte> mirror, detail::UseReduced update) const {
      const CollectiveCall call = reduction.call("reduce_and_apply", mirror.size() / reduction.size);
      AlignedBuffer<std::byte> work = widened(reduction, gradient);
      const detail::Borrowed loan{comm_};
      use_own_chunks(call, reduction, {work.data(), work.size()}, update);
      pass_round(call, reduction.size, mirror, work.size());
      comm_.barrier();
    }

    void reduce_scatter_bytes(const Reduction& reduction, std::span<const std::byte> values,
                              detail::UseReduced use) const {
      AlignedBuffer<std::byte> work = widened(reduction, values);
      const detail::Borrowed loan{comm_};
      use_own_chunks(reduction.call("reduce_scatter", values.size() / reduction.size), reduction,
                     {work.data(), work.size()}, use);
      comm_.barrier();
    }

    template <class T, ElementUpdate<T> Update>
    void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
      const CollectiveCall call{.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>};
      const std::size_t bytes_reduced = mirror.size() * sizeof(Accumulator<T>);
      const detail::Borrowed loan{comm_};
      comm_.publish(call, {});
      for_each_own_chunk(bytes_reduced, mirror.size(), [&](IndexRange mine) {
        detail::update_range(update, mine.begin, mirror.subspan(mine.begin, mine.size()),
                             gradients.subspan(mine.begin, mine.size()));
      });
      pass_round(call, sizeof(T), std::as_writable_bytes(mirror), bytes_reduced);
      comm_.barrier();
    }

   private:
    using SharedMemoryCollectives<C>::comm_;

    /// This many elements of any type fill whole cache lines.
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

    /// Calls `visit(range)` with the chunks that this member finishes.
    template <class Visit>
    void for_each_own_chunk(std::size_t bytes, std::size_t elements, Visit&& visit) const {
      for_each_part(bytes, elements, [&](IndexRange part) { visit(chunk(part, comm_.rank() + 1)); });
    }

    [[nodiscard]] static AlignedBuffer<std::byte> widened(const Reduction& reduction,
                                                          std::span<const std::byte> values) {
      const std::size_t elements = values.size() / reduction.size;
      AlignedBuffer<std::byte> wide(elements * reduction.wide_size);
      reduction.widen(wide.data(), values.data(), elements);
      return wide;
    }

    /// Reduces around the ring: afterwards chunk rank + 1 of `work`, in the Accumulator, has the sums of all members.
    /// Publishes operands in each step, so that no member leaves while its neighbour reads.
    void reduce_chunks(const CollectiveCall& call, const Reduction& reduction, std::span<std::byte> work) const {
      const Reduction& partial = *reduction.partial;
      comm_.publish(call, {.read = work.data()});
      for (std::size_t step = 0; step + 1 < comm_.size(); ++step) {
        const std::byte* const operands[] = {comm_.template peer<std::byte>(left()), work.data()};
        for_each_part(work.size(), call.elements, [&](IndexRange part) {
          const IndexRange range = chunk(part, comm_.rank() + 2 * comm_.size() - 1 - step);
          partial.reduce({operands, 2, 2}, range, work.data() + range.begin * partial.size, 0);
        });
        comm_.publish(call, {.read = work.data()});
      }
    }
    /// Calls `use` with blocks of this member's chunks of the reduction.
    void use_own_chunks(const CollectiveCall& call, const Reduction& reduction, std::span<std::byte> work,
                        detail::UseReduced use) const {
      reduce_chunks(call, reduction, work);
      for_each_own_chunk(work.size(), call.elements, [&](IndexRange mine) {
        detail::use_finished(reduction, mine, work.data() + mine.begin * reduction.wide_size, nullptr, comm_.size(),
                             use);
      });
    }

    /// Passes finished chunks, of elements of `size` bytes, around the ring. `bytes` is the size of the reduced values,
    /// which determines the chunks.
    void pass_round(const CollectiveCall& call, std::size_t size, std::span<std::byte> result,
                    std::size_t bytes) const {
      for (std::size_t step = 0; step + 1 < comm_.size(); ++step) {
        comm_.publish(call, {.read = result.data()});
        const std::byte* const theirs = comm_.template peer<std::byte>(left());
        if (theirs == result.data()) continue;  // shared by all
        for_each_part(bytes, call.elements, [&](IndexRange part) {
          const IndexRange range = chunk(part, comm_.rank() + comm_.size() - step);
          std::copy_n(theirs + range.begin * size, range.size() * size, result.data() + range.begin * size);
        });
      }
    }
  };
};

}  // namespace dist
