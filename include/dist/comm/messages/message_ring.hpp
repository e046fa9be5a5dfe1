#pragma once

#include <cstddef>
#include <exception>
#include <span>

#include <dist/comm/communicator.hpp>
#include <dist/comm/messages/declarations.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>

namespace dist::detail {

/// A ring of members that pass messages, an algorithm of MessageCollectives: RingAllReduce without shared memory. Each
/// member receives segments from its left neighbour and sends segments to its right one, and combines a segment while
/// the next ones are in transit.
///
/// Every member has a shard of the elements, whose partial sums travel from the member after the owner to the owner. So
/// the bits are the same on all members and in every run.
template <class C>
class MessageRing : public ShardedReduction<MessageRing<C>, C> {
 public:
  using ShardedReduction<MessageRing, C>::ShardedReduction;

  /// Sends the values of member `root` once around the ring.
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

  /// Sends each member's part of `all`, `part(rank)`, around the ring to all others.
  void gather(Elements all, FunctionRef<IndexRange(std::size_t)> part) const {
    std::size_t segments = 0;
    for (std::size_t rank = 0; rank < comm_.size(); ++rank)
      segments = std::max(segments, all.segments(part(rank).size()));
    const std::size_t steps = comm_.size() - 1;
    const auto bytes_in = [&](std::size_t number,
                              std::size_t from) {  // in the parts that arrive, or leave a step later
      return all.bytes(all.segment(part(left_by(number / segments + from)), number % segments));
    };
    InFlight<C, receives_ahead> incoming{comm_};
    InFlight<C, sends_behind> outgoing{comm_};
    for (std::size_t posted = 0, at = 0; at < steps * segments; ++at) {
      for (; posted < std::min(at + receives_ahead, steps * segments); ++posted)
        incoming.receive(posted, bytes_in(posted, 1), left());
      // A segment that leaves in this step arrived in the previous one, as number at - segments.
      outgoing.send(at, bytes_in(at, 0), right());
      incoming.wait(at);
    }
    outgoing.wait_for_all();
  }

  /// Calls `use` with blocks of the reduction of this member's shard. For many elements.
  void reduce_shards(const Reduction& reduction, std::span<const std::byte> values, UseReduced use) const {
    const std::size_t count = values.size() / reduction.size;
    const std::span<std::byte> sums = scratch_of<std::byte>(comm_, 0, count * reduction.wide_size);
    const Elements travelling{sums, reduction.wide_size};
    const std::size_t segments =
        travelling.segments(message_shard(count, 0, comm_.size()).size());  // the largest shard
    const std::size_t steps = comm_.size() - 1;
    const auto range_in = [&](std::size_t number, std::size_t from) {  // in the sums that arrive, or leave a step later
      return travelling.segment(message_shard(count, left_by(number / segments + from), comm_.size()),
                                number % segments);
    };
    const auto own = [&](IndexRange range) { return values.data() + range.begin * reduction.size; };
    std::exception_ptr refused;  // exception of `use`: rethrown at the end, so that the peers do not wait
    InFlight<C, receives_ahead> incoming{comm_};
    InFlight<C, sends_behind> outgoing{comm_};
    for (std::size_t posted = 0, at = 0; at < steps * segments; ++at) {
      for (; posted < std::min(at + receives_ahead, steps * segments); ++posted)
        incoming.receive(posted, travelling.bytes(range_in(posted, 2)), left());
      const IndexRange out = range_in(at, 1);
      std::span<const std::byte> leaving = travelling.bytes(out);
      if (at < segments && reduction.widens())
        reduction.widen(travelling.bytes(out).data(), own(out), out.size());
      else if (at < segments)
        leaving = {own(out), leaving.size()};
      outgoing.send(at, leaving, right());
      incoming.wait(at);
      const IndexRange in = range_in(at, 2);
      std::byte* const arrived = travelling.bytes(in).data();
      if (at < (steps - 1) * segments) {
        reduction.combine(arrived, own(in), in.size());
      } else if (!refused) {
        try {
          use_finished(reduction, in, arrived, own(in), comm_.size(), use);
        } catch (...) {
          refused = std::current_exception();
        }
      }
    }
    outgoing.wait_for_all();
    if (refused) std::rethrow_exception(refused);
  }

 private:
  using ShardedReduction<MessageRing, C>::comm_;

  [[nodiscard]] std::size_t left() const noexcept { return (comm_.rank() + comm_.size() - 1) % comm_.size(); }
  [[nodiscard]] std::size_t right() const noexcept { return (comm_.rank() + 1) % comm_.size(); }
  /// The rank `steps` to the left, up to twice around the ring.
  [[nodiscard]] std::size_t left_by(std::size_t steps) const noexcept {
    return (comm_.rank() + 2 * comm_.size() - steps) % comm_.size();
  }
};

}  // namespace dist::detail
