#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <exception>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/comm/membership.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/checksum.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/dtype.hpp>
#include <dist/core/function_ref.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

namespace dist::detail {

/// The ring between members that pass messages: RingAllReduce where memory is not shared. Each member receives from its
/// left neighbour and sends to its right one, a segment at a time, and combines a segment while the next ones travel.
///
/// Every member has a shard of the elements. Sums of a shard start at the member after its owner and end there, so
/// their bits are the same on all members and in every run.
template <PassesMessages C>
class MessageRing : public Membership<C> {
 public:
  using Membership<C>::Membership;

  /// Replaces the values of every member by their reduction. A collective call.
  template <class T, ReduceOp<T> Op>
  void all_reduce(Op op, std::span<T> values) const {
    comm_.announce(
        {.operation = "all_reduce", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>});
    if (comm_.size() == 1) return;
    const auto keep = [&](std::size_t first, std::span<const T> reduced) {
      std::copy(reduced.begin(), reduced.end(), values.data() + first);
    };
    if (is_small<T>(values.size())) return reduce_together(op, std::span<const T>{values}, {0, values.size()}, keep);
    reduce_round(op, std::span<const T>{values}, keep);
    pass_round(Elements{values}, [&](std::size_t rank) { return shard(values.size(), rank); });
  }

  /// Gives every member the values of member `root`. A collective call.
  template <class T>
  void broadcast(std::size_t root, std::span<T> values) const {
    DIST_EXPECT(root < comm_.size());
    comm_.announce({.operation = "broadcast", .elements = values.size(), .dtype = dtype_name<T>, .root = root});
    pass_along(root, Elements{values});
  }

  /// Gives every member the values of all, concatenated in rank order, of which `counts[rank]` are that member's.
  /// `mine` may be this member's part of `all`. A collective call.
  template <class T>
  void all_gather(std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) const {
    DIST_EXPECT(counts.size() == comm_.size() && mine.size() == counts[comm_.rank()]);
    DIST_EXPECT(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) == all.size());
    comm_.announce(
        {.operation = "all_gather", .elements = all.size(), .dtype = dtype_name<T>, .counts = checksum_of(counts)});
    const auto part = [&](std::size_t rank) {
      const std::size_t first =
          std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0});
      return IndexRange{first, first + counts[rank]};
    };
    if (T* const place = all.data() + part(comm_.rank()).begin; mine.data() != place)
      std::copy(mine.begin(), mine.end(), place);
    pass_round(Elements{all}, part);
  }

  /// Gives every member one small value of each, `of_all[rank]`. A collective call.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void exchange(std::string_view operation, const T& mine, std::span<T> of_all) const {
    DIST_EXPECT(of_all.size() == comm_.size());
    comm_.announce({.operation = operation, .elements = sizeof(T), .dtype = "exchanged bytes"});
    of_all[comm_.rank()] = mine;
    pass_round(Elements{of_all}, [](std::size_t rank) { return IndexRange{rank, rank + 1}; });
  }

  /// Reduces the gradients and applies them: of its shard of the reduced gradients each member calls `update(first,
  /// mirror, reduced)`, which changes the member's own elements from `first` on, and the results go round. Leaves the
  /// gradients as they were. A collective call.
  template <class T, ReduceOp<T> Op, class Update>
  void reduce_and_apply(Op op, std::span<T> gradient, std::span<T> mirror, Update&& update) const {
    comm_.announce(
        {.operation = "reduce_and_apply", .reduction = Op::name, .elements = mirror.size(), .dtype = dtype_name<T>});
    reduce_shard(op, std::span<const T>{gradient}, [&](std::size_t first, std::span<const T> reduced) {
      update(first, mirror.subspan(first, reduced.size()), reduced);
    });
    comm_.announce({.operation = "end of reduce_and_apply"});  // unless an update threw
    pass_round(Elements{mirror}, [&](std::size_t rank) { return shard(mirror.size(), rank); });
  }

  /// The first half of `reduce_and_apply`: of its shard, `use(first, reduced)` sees the reduction of the members'
  /// elements block by block. Leaves the operands as they were. A collective call.
  template <class T, ReduceOp<T> Op, class Use>
  void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
    comm_.announce(
        {.operation = "reduce_scatter", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>});
    reduce_shard(op, values, use);
  }

  /// The second half: of the same shard, `update(first, mine)` changes the member's own elements from `first` on, and
  /// the results go round. A collective call.
  template <class T, class Update>
  void update_shards(std::span<T> mirror, Update&& update) const {
    const IndexRange mine = shard(mirror.size(), comm_.rank());
    if (mine.size() != 0)
      with_widest_vectors([&]<std::size_t>()
                              DIST_INLINE_LAMBDA { update(mine.begin, mirror.subspan(mine.begin, mine.size())); });
    comm_.announce({.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>});
    pass_round(Elements{mirror}, [&](std::size_t rank) { return shard(mirror.size(), rank); });
  }

 protected:
  using Membership<C>::comm_;

 private:
  /// The bytes of one message, below the 4 MiB of spec H18. Less costs more than combining one segment while the next
  /// one travels gains: between processes of one machine, each of several segments is a handshake of its own.
  static constexpr std::size_t segment_bytes = std::size_t{1} << 20;
  static constexpr std::size_t receives_ahead = 4;
  static constexpr std::size_t sends_behind = 4;
  /// So many elements of any type fill whole cache lines.
  static constexpr std::size_t granule = cache_line;
  /// Up to this many bytes of all members together, all combine everything, which halves the number of steps.
  static constexpr std::size_t small_bytes = std::size_t{16} << 10;

  /// Values on their way, which are bytes for whom they pass: the code that passes them is one for all types.
  class Elements {
   public:
    template <class T>
    explicit Elements(std::span<T> values) noexcept : bytes_(std::as_writable_bytes(values)), size_(sizeof(T)) {}

    [[nodiscard]] std::size_t count() const noexcept { return bytes_.size() / size_; }
    /// How many messages carry so many of them.
    [[nodiscard]] std::size_t segments(std::size_t elements) const noexcept {
      return (elements + most_at_once() - 1) / most_at_once();
    }
    /// Segment `number` of a range; empty after its end.
    [[nodiscard]] IndexRange segment(IndexRange range, std::size_t number) const noexcept {
      const std::size_t begin = std::min(range.begin + number * most_at_once(), range.end);
      return {begin, std::min(begin + most_at_once(), range.end)};
    }
    [[nodiscard]] std::span<std::byte> bytes(IndexRange range) const noexcept {
      return bytes_.subspan(range.begin * size_, range.size() * size_);
    }

   private:
    [[nodiscard]] std::size_t most_at_once() const noexcept { return std::max<std::size_t>(segment_bytes / size_, 1); }

    std::span<std::byte> bytes_;
    std::size_t size_;  // of each
  };

  /// The last transfers of one direction. Transfer number n takes the place of number n - size, which it waits for.
  template <std::size_t size>
  class InFlight {
   public:
    explicit InFlight(const C& comm) : comm_(comm) {}

    void receive(std::size_t number, std::span<std::byte> bytes, std::size_t from) {
      if (!bytes.empty()) start(number, comm_.start_receive(bytes, from));
    }
    void send(std::size_t number, std::span<const std::byte> bytes, std::size_t to) {
      finish(number);
      if (!bytes.empty()) start(number, comm_.start_send(bytes, to));
    }
    /// Empty segments do not travel: nothing to wait for.
    void finish(std::size_t number) {
      Place& place = places_[number % size];
      if (!place.used) return;
      comm_.finish(place.transfer);
      place.used = false;
    }
    void finish_all() {
      for (std::size_t number = 0; number < size; ++number) finish(number);
    }

   private:
    struct Place {
      typename C::Transfer transfer{};
      bool used = false;
    };

    void start(std::size_t number, typename C::Transfer transfer) { places_[number % size] = {transfer, true}; }

    const C& comm_;
    std::array<Place, size> places_{};
  };

  [[nodiscard]] std::size_t left() const noexcept { return (comm_.rank() + comm_.size() - 1) % comm_.size(); }
  [[nodiscard]] std::size_t right() const noexcept { return (comm_.rank() + 1) % comm_.size(); }
  /// The rank `steps` to the left, at most twice round.
  [[nodiscard]] std::size_t left_by(std::size_t steps) const noexcept {
    return (comm_.rank() + 2 * comm_.size() - steps) % comm_.size();
  }
  [[nodiscard]] IndexRange shard(std::size_t elements, std::size_t rank) const noexcept {
    return shard_of(elements, rank, comm_.size(), granule);
  }
  template <class T>
  [[nodiscard]] bool is_small(std::size_t elements) const noexcept {
    return elements * comm_.size() <= small_bytes / sizeof(T);
  }
  template <class T>
  [[nodiscard]] std::span<T> scratch(std::size_t which, std::size_t elements) const {
    return {reinterpret_cast<T*>(comm_.scratch(which, elements * sizeof(T))), elements};
  }

  /// The values of member `root` go once round.
  void pass_along(std::size_t root, Elements values) const {
    const std::size_t distance = (comm_.rank() + comm_.size() - root) % comm_.size();
    const bool receives = distance != 0;
    const bool sends = distance + 1 < comm_.size();
    const IndexRange all{0, values.count()};
    const std::size_t segments = values.segments(values.count());
    InFlight<receives_ahead> incoming{comm_};
    InFlight<sends_behind> outgoing{comm_};
    for (std::size_t posted = 0, at = 0; at < segments; ++at) {
      for (; receives && posted < std::min(at + receives_ahead, segments); ++posted)
        incoming.receive(posted, values.bytes(values.segment(all, posted)), left());
      if (receives) incoming.finish(at);
      if (sends) outgoing.send(at, values.bytes(values.segment(all, at)), right());
    }
    outgoing.finish_all();
  }

  /// Each member's part of `all`, `part(rank)`, goes round to all others.
  void pass_round(Elements all, FunctionRef<IndexRange(std::size_t)> part) const {
    std::size_t segments = 0;
    for (std::size_t rank = 0; rank < comm_.size(); ++rank)
      segments = std::max(segments, all.segments(part(rank).size()));
    const std::size_t steps = comm_.size() - 1;
    const auto bytes_in = [&](std::size_t number,
                              std::size_t from) {  // of the parts that arrive, or leave a step later
      return all.bytes(all.segment(part(left_by(number / segments + from)), number % segments));
    };
    InFlight<receives_ahead> incoming{comm_};
    InFlight<sends_behind> outgoing{comm_};
    for (std::size_t posted = 0, at = 0; at < steps * segments; ++at) {
      for (; posted < std::min(at + receives_ahead, steps * segments); ++posted)
        incoming.receive(posted, bytes_in(posted, 1), left());
      // What leaves in this step arrived in the one before, as number at - segments.
      outgoing.send(at, bytes_in(at, 0), right());
      incoming.finish(at);
    }
    outgoing.finish_all();
  }

  /// Calls `use(first, reduced)` with blocks of the reduction of this member's shard.
  template <class T, class Op, class Use>
  void reduce_shard(Op op, std::span<const T> values, Use&& use) const {
    if (comm_.size() == 1) {
      if (values.empty()) return;
      with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA { use(std::size_t{0}, values); });
    } else if (is_small<T>(values.size())) {
      reduce_together(op, values, shard(values.size(), comm_.rank()), use);
    } else {
      reduce_round(op, values, use);
    }
  }

  /// The same for `range` of few elements, of which every member gets those of all, and combines them in rank order.
  template <class T, class Op, class Use>
  void reduce_together(Op op, std::span<const T> values, IndexRange range, Use&& use) const {
    const std::span<T> of_all = scratch<T>(0, values.size() * comm_.size());
    std::copy(values.begin(), values.end(), of_all.data() + comm_.rank() * values.size());
    pass_round(Elements{of_all}, [&](std::size_t rank) {
      return IndexRange{rank * values.size(), (rank + 1) * values.size()};
    });
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      alignas(cache_line) T block[block_elements<T>];
      for (std::size_t first = range.begin; first < range.end; first += block_elements<T>) {
        const std::span<T> reduced{block, std::min(block_elements<T>, range.end - first)};
        reduce_block(op, comm_.size(), reduced,
                     [&](std::size_t rank) { return of_all.data() + rank * values.size() + first; });
        use(first, std::span<const T>{reduced});
      }
    });
  }

  /// The same for many elements.
  template <class T, class Op, class Use>
  void reduce_round(Op op, std::span<const T> values, Use&& use) const {
    const std::span<Accumulator<T>> sums = scratch<Accumulator<T>>(0, values.size());
    sum_round(op, values, sums,
              [&](IndexRange range) { finish_own<T>(op, std::span<const Accumulator<T>>{sums}, values, range, use); });
  }

  /// Partial sums of all shards go round, each ends at its owner: `finish(range)` is called when the sums of a part of
  /// this member's shard have come, in which its own values are still missing.
  template <class T, class Op>
  void sum_round(Op op, std::span<const T> values, std::span<Accumulator<T>> sums,
                 FunctionRef<void(IndexRange)> finish) const {
    const std::size_t count = values.size();
    const Elements travelling{sums};
    const std::size_t segments = travelling.segments(shard(count, 0).size());  // the largest shard
    const std::size_t steps = comm_.size() - 1;
    const auto range_in = [&](std::size_t number, std::size_t from) {  // of the sums that arrive, or leave a step later
      return travelling.segment(shard(count, left_by(number / segments + from)), number % segments);
    };
    std::exception_ptr refused;  // by `finish`: thrown when the round is complete, so that the peers do not wait
    InFlight<receives_ahead> incoming{comm_};
    InFlight<sends_behind> outgoing{comm_};
    for (std::size_t posted = 0, at = 0; at < steps * segments; ++at) {
      for (; posted < std::min(at + receives_ahead, steps * segments); ++posted)
        incoming.receive(posted, travelling.bytes(range_in(posted, 2)), left());
      const IndexRange out = range_in(at, 1);
      if (at < segments)
        outgoing.send(at, own_bytes<T>(values, sums, out), right());
      else
        outgoing.send(at, travelling.bytes(out), right());
      incoming.finish(at);
      const IndexRange in = range_in(at, 2);
      if (at < (steps - 1) * segments) {
        combine_own(op, sums.subspan(in.begin, in.size()), values.data() + in.begin);
      } else if (!refused) {
        try {
          finish(in);
        } catch (...) {
          refused = std::current_exception();
        }
      }
    }
    outgoing.finish_all();
    if (refused) std::rethrow_exception(refused);
  }

  /// This member's values of `range`, in the type in which sums travel.
  template <class T>
  [[nodiscard]] static std::span<const std::byte> own_bytes(std::span<const T> values, std::span<Accumulator<T>> sums,
                                                            IndexRange range) {
    if constexpr (std::same_as<Accumulator<T>, T>) {
      return std::as_bytes(values.subspan(range.begin, range.size()));
    } else {
      with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
        for (std::size_t i = range.begin; i < range.end; ++i) sums[i] = static_cast<Accumulator<T>>(values[i]);
      });
      return std::as_bytes(sums.subspan(range.begin, range.size()));
    }
  }
  /// sums[i] = sums[i] (+) own[i]: those of the members before in the ring come first.
  template <class Op, class W, class T>
  static void combine_own(Op op, std::span<W> sums, const T* own) {
    with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      W* DIST_RESTRICT combined = sums.data();
      const T* DIST_RESTRICT mine = own;
      for (std::size_t i = 0; i < sums.size(); ++i) combined[i] = op(combined[i], static_cast<W>(mine[i]));
    });
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
