#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/declarations.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

namespace dist::detail {

/// The ring between members that pass messages, an algorithm of MessageCollectives: RingAllReduce where memory is not
/// shared. Each member receives from its left neighbour and sends to its right one, a segment at a time, and combines a
/// segment while the next ones travel.
///
/// Every member has a shard of the elements. Sums of a shard start at the member after its owner and end there, so
/// their bits are the same on all members and in every run.
template <class C>
class MessageRing : public ShardedReduction<MessageRing<C>, C> {
 public:
  using ShardedReduction<MessageRing, C>::ShardedReduction;

  /// The values of member `root` go once round.
  void broadcast(std::size_t root, Elements values) const {
    const std::size_t distance = (comm_.rank() + comm_.size() - root) % comm_.size();
    const bool receives = distance != 0;
    const bool sends = distance + 1 < comm_.size();
    const IndexRange all{0, values.count()};
    const std::size_t segments = values.segments(values.count());
    InFlight<C, receives_ahead> incoming{comm_};
    InFlight<C, sends_behind> outgoing{comm_};
    for (std::size_t posted = 0, at = 0; at < segments; ++at) {
      for (; receives && posted < std::min(at + receives_ahead, segments); ++posted)
        incoming.receive(posted, values.bytes(values.segment(all, posted)), left());
      if (receives) incoming.wait(at);
      if (sends) outgoing.send(at, values.bytes(values.segment(all, at)), right());
    }
    outgoing.wait_for_all();
  }

  /// Each member's part of `all`, `part(rank)`, goes round to all others.
  void gather(Elements all, FunctionRef<IndexRange(std::size_t)> part) const {
    std::size_t segments = 0;
    for (std::size_t rank = 0; rank < comm_.size(); ++rank)
      segments = std::max(segments, all.segments(part(rank).size()));
    const std::size_t steps = comm_.size() - 1;
    const auto bytes_in = [&](std::size_t number,
                              std::size_t from) {  // of the parts that arrive, or leave a step later
      return all.bytes(all.segment(part(left_by(number / segments + from)), number % segments));
    };
    InFlight<C, receives_ahead> incoming{comm_};
    InFlight<C, sends_behind> outgoing{comm_};
    for (std::size_t posted = 0, at = 0; at < steps * segments; ++at) {
      for (; posted < std::min(at + receives_ahead, steps * segments); ++posted)
        incoming.receive(posted, bytes_in(posted, 1), left());
      // What leaves in this step arrived in the one before, as number at - segments.
      outgoing.send(at, bytes_in(at, 0), right());
      incoming.wait(at);
    }
    outgoing.wait_for_all();
  }

  /// Calls `use(first, reduced)` with blocks of the reduction of this member's shard, of many elements.
  template <class T, class Op, class Use>
  void reduce_shards(Op op, std::span<const T> values, Use&& use) const {
    const std::span<Accumulator<T>> sums = scratch_of<Accumulator<T>>(comm_, 0, values.size());
    sum_round(op, values, sums,
              [&](IndexRange range) { finish_own<T>(op, std::span<const Accumulator<T>>{sums}, values, range, use); });
  }

 private:
  using ShardedReduction<MessageRing, C>::comm_;

  [[nodiscard]] std::size_t left() const noexcept { return (comm_.rank() + comm_.size() - 1) % comm_.size(); }
  [[nodiscard]] std::size_t right() const noexcept { return (comm_.rank() + 1) % comm_.size(); }
  /// The rank `steps` to the left, at most twice round.
  [[nodiscard]] std::size_t left_by(std::size_t steps) const noexcept {
    return (comm_.rank() + 2 * comm_.size() - steps) % comm_.size();
  }

  /// Partial sums of all shards go round, each ends at its owner: `finish(range)` is called when the sums of a part of
  /// this member's shard have come, in which its own values are still missing.
  template <class T, class Op>
  void sum_round(Op op, std::span<const T> values, std::span<Accumulator<T>> sums,
                 FunctionRef<void(IndexRange)> finish) const {
    const std::size_t count = values.size();
    const Elements travelling{sums};
    const std::size_t segments =
        travelling.segments(message_shard(count, 0, comm_.size()).size());  // the largest shard
    const std::size_t steps = comm_.size() - 1;
    const auto range_in = [&](std::size_t number, std::size_t from) {  // of the sums that arrive, or leave a step later
      return travelling.segment(message_shard(count, left_by(number / segments + from), comm_.size()),
                                number % segments);
    };
    std::exception_ptr refused;  // by `finish`: thrown when the round is complete, so that the peers do not wait
    InFlight<C, receives_ahead> incoming{comm_};
    InFlight<C, sends_behind> outgoing{comm_};
    for (std::size_t posted = 0, at = 0; at < steps * segments; ++at) {
      for (; posted < std::min(at + receives_ahead, steps * segments); ++posted)
        incoming.receive(posted, travelling.bytes(range_in(posted, 2)), left());
      const IndexRange out = range_in(at, 1);
      if (at < segments)
        outgoing.send(at, own_bytes<T>(values, sums, out), right());
      else
        outgoing.send(at, travelling.bytes(out), right());
      incoming.wait(at);
      const IndexRange in = range_in(at, 2);
      if (at < (steps - 1) * segments) {
        combine_into(op, sums.subspan(in.begin, in.size()), values.data() + in.begin);
      } else if (!refused) {
        try {
          finish(in);
        } catch (...) {
          refused = std::current_exception();
        }
      }
    }
    outgoing.wait_for_all();
    if (refused) std::rethrow_exception(refused);
  }

  /// This member's values of `range`, in the type in which sums travel.
  template <class T>
  [[nodiscard]] static std::span<const std::byte> own_bytes(std::span<const T> values, std::span<Accumulator<T>> sums,
                                                            IndexRange range) {
    if constexpr (std::same_as<Accumulator<T>, T>) {
      return std::as_bytes(values.subspan(range.begin, range.size()));
    } else {
      widen_into(values.subspan(range.begin, range.size()), sums.data() + range.begin);
      return std::as_bytes(sums.subspan(range.begin, range.size()));
    }
  }
  template <class T, class Op, class Use>
  void finish_own(Op op, std::span<const Accumulator<T>> sums, std::span<const T> own, IndexRange range,
                  Use& use) const {
    const std::size_t members = comm_.size();
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      alignas(cache_line) T block[block_elements<T>];
      for (std::size_t first = range.begin; first < range.end; first += block_elements<T>) {
        const std::size_t elements = std::min(block_elements<T>, range.end - first);
        const Accumulator<T>* DIST_RESTRICT before = sums.data() + first;
        const T* DIST_RESTRICT mine = own.data() + first;
        for (std::size_t i = 0; i < elements; ++i)
          block[i] = static_cast<T>(Op::finish(op(before[i], static_cast<Accumulator<T>>(mine[i])), members));
        use(first, std::span<const T>{block, elements});
      }
    });
  }
};

}  // namespace dist::detail
