#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <exception>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dist/comm/element_update.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/membership.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/datatype.hpp>
#include <dist/comm/mpi/operation.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/checksum.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/dtype.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// MPI's own collectives, which know the network and the machine: MPI_Allreduce, MPI_Bcast and so on. Their blocking
/// forms, because Open MPI's others take up to twice as long: missing members are found before, when the call is
/// announced, and a Watchdog looks after what happens inside.
///
/// MPI chooses the order in which values are combined: by the count and the number of members, so that the bits are the
/// same in every run. Operands may lie anywhere.
struct MpiAllReduce {
  static constexpr std::string_view name = "MpiAllReduce";
  static constexpr bool sums_in_rank_order = false;
  /// It talks to all processes itself, also to those of one node (MultiWorkerOptions::hierarchical).
  static constexpr bool joins_all_processes = true;

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = std::same_as<C, mpi::Communicator>;

  template <class C>
  class On : public Membership<C> {
    static_assert(fits<C>, "MpiAllReduce needs processes that MPI connects: use it with mpi::Communicator");

   public:
    using Membership<C>::Membership;

    /// The same collectives, which wait longer or shorter for other members (spec H13).
    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    /// Replaces the values of every member by their reduction. A collective call.
    template <class T, ReduceOp<T> Op>
    void all_reduce(Op op, std::span<T> values) const {
      const CollectiveCall call{
          .operation = "all_reduce", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>};
      announce(call);
      if (comm_.size() == 1) return;
      if constexpr (std::same_as<Accumulator<T>, T>) {
        all_reduce_in_place<T>(call, op, values);
        if constexpr (!std::derived_from<Op, detail::FinishesAsIs>)
          detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
            for (T& value : values) value = Op::finish(value, comm_.size());
          });
      } else {
        const std::span<Accumulator<T>> wide = widened(std::span<const T>{values});
        all_reduce_in_place<T>(call, op, wide);
        finish_into<T, Op>(wide, values);
      }
    }

    /// Gives every member the values of member `root`. A collective call.
    template <class T>
    void broadcast(std::size_t root, std::span<T> values) const {
      DIST_EXPECT(root < comm_.size());
      const CollectiveCall call{
          .operation = "broadcast", .elements = values.size(), .dtype = dtype_name<T>, .root = root};
      announce(call);
      if (comm_.size() > 1) broadcast_bytes(call, root, std::as_writable_bytes(values));
    }

    /// Gives every member the values of all, concatenated in rank order, of which `counts[rank]` are that
    /// member's. `mine` may be this member's part of `all`. A collective call.
    template <class T>
    void all_gather(std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) const {
      DIST_EXPECT(counts.size() == comm_.size() && mine.size() == counts[comm_.rank()]);
      DIST_EXPECT(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) == all.size());
      const CollectiveCall call{.operation = "all_gather",
                                .elements = all.size(),
                                .dtype = dtype_name<T>,
                                .counts = detail::checksum_of(counts)};
      announce(call);
      const std::size_t first =
          std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(comm_.rank()), std::size_t{0});
      if (mine.data() != all.data() + first) std::copy(mine.begin(), mine.end(), all.data() + first);
      gather_parts(call, all, [&](std::size_t rank) { return counts[rank]; });
    }

    /// Gives every member one small value of each, `of_all[rank]`. A collective call.
    template <class T>
      requires std::is_trivially_copyable_v<T>
    void exchange(std::string_view operation, const T& mine, std::span<T> of_all) const {
      DIST_EXPECT(of_all.size() == comm_.size());
      const CollectiveCall call{.operation = operation, .elements = sizeof(T), .dtype = "exchanged bytes"};
      announce(call);
      of_all[comm_.rank()] = mine;
      if (comm_.size() == 1) return;
      const Watchdog::Guard guard{comm_.watchdog(), call};
      mpi::check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, of_all.data(), sizeof(T), MPI_BYTE, comm_.native()),
                 "MPI_Allgather");
    }

    /// Reduces the gradients and applies them: each member updates its own elements by its shard of the reduced
    /// gradients, and the results go to all. Leaves the gradients as they were. A collective call.
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op op, std::span<T> gradient, std::span<T> mirror, const Update& update) const {
      const CollectiveCall call{
          .operation = "reduce_and_apply", .reduction = Op::name, .elements = mirror.size(), .dtype = dtype_name<T>};
      announce(call);
      reduce_shards(call, op, std::span<const T>{gradient},
                    [&](std::size_t first, std::span<const T> reduced) DIST_INLINE_LAMBDA {
                      detail::update_block(update, first, mirror.subspan(first, reduced.size()), reduced);
                    });
      gather_shards("end of reduce_and_apply", mirror);  // a member whose update threw does not come
    }

    /// The first half of `reduce_and_apply`: of its shard, `use(first, reduced)` sees the reduction of the members'
    /// elements. Leaves the operands as they were. A collective call.
    template <class T, ReduceOp<T> Op, class Use>
    void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
      const CollectiveCall call{
          .operation = "reduce_scatter", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>};
      announce(call);
      reduce_shards(call, op, values, use);
    }

    /// The second half: each member updates its own elements of the same shard by its `gradients`, and the results go
    /// to all. A collective call.
    template <class T, ElementUpdate<T> Update>
    void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
      announce({.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>});
      for_each_shard(mirror.size(), comm_.rank(), comm_.size(), [&](IndexRange mine) {
        detail::update_range(update, mine.begin, mirror.subspan(mine.begin, mine.size()),
                             gradients.subspan(mine.begin, mine.size()));
      });
      gather_shards("end of update_shards", mirror);  // a member whose update threw does not come
    }

    /// Which elements are whose, and the way of all shards to all (DividesShards).
    template <class Visit>
    static void for_each_shard(std::size_t elements, std::size_t rank, std::size_t members, Visit&& visit) {
      for_each_piece(elements, [&](IndexRange piece) { visit(shard(piece, rank, members)); });
    }
    template <class T>
    void gather_shards(std::string_view operation, std::span<T> values) const {
      const CollectiveCall call{.operation = operation, .elements = values.size(), .dtype = dtype_name<T>};
      announce(call);
      for_each_piece(values.size(), [&](IndexRange piece) {
        gather_parts(call, values.subspan(piece.begin, piece.size()),
                     [&](std::size_t rank) { return shard(piece, rank).size(); });
      });
    }

   private:
    /// MPI counts in int: so many bytes at a time.
    static constexpr std::size_t most_bytes = std::size_t{1} << 30;
    /// So many elements of any type fill whole cache lines.
    static constexpr std::size_t granule = cache_line;

    void announce(const CollectiveCall& call) const {
      comm_.announce(call);
      comm_.look_for_failures();
    }

    template <class Visit>
    static void for_each_piece(std::size_t elements, Visit&& visit) {
      constexpr std::size_t most = most_bytes / sizeof(double);
      for (std::size_t first = 0; first < elements; first += most) visit({first, std::min(first + most, elements)});
    }
    [[nodiscard]] static IndexRange shard(IndexRange piece, std::size_t rank, std::size_t members) noexcept {
      const IndexRange within = shard_of(piece.size(), rank, members, granule);
      return {piece.begin + within.begin, piece.begin + within.end};
    }
    [[nodiscard]] IndexRange shard(IndexRange piece, std::size_t rank) const noexcept {
      return shard(piece, rank, comm_.size());
    }

    template <class T>
    [[nodiscard]] std::span<Accumulator<T>> widened(std::span<const T> values) const {
      using Wide = Accumulator<T>;
      const std::span<Wide> wide{reinterpret_cast<Wide*>(comm_.scratch(0, values.size() * sizeof(Wide))),
                                 values.size()};
      detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
        for (std::size_t i = 0; i < values.size(); ++i) wide[i] = static_cast<Wide>(values[i]);
      });
      return wide;
    }
    template <class T, class Op>
    void finish_into(std::span<const Accumulator<T>> combined, std::span<T> values) const {
      detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<T>(Op::finish(combined[i], comm_.size()));
      });
    }

    template <class T, class Op>
    void all_reduce_in_place(const CollectiveCall& call, Op, std::span<Accumulator<T>> values) const {
      const Watchdog::Guard guard{comm_.watchdog(), call};
      for_each_piece(values.size(), [&](IndexRange piece) {
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, values.data() + piece.begin, static_cast<int>(piece.size()),
                                 mpi::datatype<T>(), mpi::operation<Op, T>(), comm_.native()),
                   "MPI_Allreduce");
      });
    }

    void broadcast_bytes(const CollectiveCall& call, std::size_t root, std::span<std::byte> bytes) const {
      const Watchdog::Guard guard{comm_.watchdog(), call};
      for (std::size_t first = 0; first < bytes.size(); first += most_bytes)
        mpi::check(MPI_Bcast(bytes.data() + first, static_cast<int>(std::min(most_bytes, bytes.size() - first)),
                             MPI_BYTE, static_cast<int>(root), comm_.native()),
                   "MPI_Bcast");
    }

    /// Gives every member the parts of all, which follow each other in `all` and have `count_of(rank)` elements.
    /// Each member's own part is in place.
    template <class T, class CountOf>
    void gather_parts(const CollectiveCall& call, std::span<T> all, CountOf&& count_of) const {
      if (comm_.size() == 1 || all.empty()) return;
      if (all.size_bytes() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        std::size_t first = 0;
        for (std::size_t rank = 0; rank < comm_.size(); first += count_of(rank++))
          broadcast_bytes(call, rank, std::as_writable_bytes(all.subspan(first, count_of(rank))));
        return;
      }
      int* const bytes = reinterpret_cast<int*>(comm_.scratch(1, 2 * comm_.size() * sizeof(int)));
      int* const places = bytes + comm_.size();
      int place = 0;
      for (std::size_t rank = 0; rank < comm_.size(); ++rank) {
        bytes[rank] = static_cast<int>(count_of(rank) * sizeof(T));
        places[rank] = place;
        place += bytes[rank];
      }
      const Watchdog::Guard guard{comm_.watchdog(), call};
      mpi::check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, all.data(), bytes, places, MPI_BYTE, comm_.native()),
                 "MPI_Allgatherv");
    }

    /// Calls `use(first, reduced)` with blocks of this member's reduced shard.
    template <class T, class Op, class Use>
    void reduce_shards(const CollectiveCall& call, Op, std::span<const T> values, Use&& use) const {
      using Wide = Accumulator<T>;
      const Wide* operand = nullptr;
      if constexpr (std::same_as<Wide, T>)
        operand = values.data();
      else
        operand = widened(values).data();
      std::exception_ptr refused;  // by `use`: thrown when all is reduced; otherwise the peers would wait in MPI
      for_each_piece(values.size(), [&](IndexRange piece) {
        const IndexRange mine = shard(piece, comm_.rank());
        const Wide* combined = operand + mine.begin;
        if (comm_.size() > 1) {
          Wide* const result = reinterpret_cast<Wide*>(comm_.scratch(2, mine.size() * sizeof(Wide)));
          int* const counts = reinterpret_cast<int*>(comm_.scratch(1, comm_.size() * sizeof(int)));
          for (std::size_t rank = 0; rank < comm_.size(); ++rank)
            counts[rank] = static_cast<int>(shard(piece, rank).size());
          const Watchdog::Guard guard{comm_.watchdog(), call};
          mpi::check(MPI_Reduce_scatter(operand + piece.begin, result, counts, mpi::datatype<T>(),
                                        mpi::operation<Op, T>(), comm_.native()),
                     "MPI_Reduce_scatter");
          combined = result;
        }
        if (refused) return;
        try {
          use_finished<T, Op>(mine, combined, use);
        } catch (...) {
          refused = std::current_exception();
        }
      });
      if (refused) std::rethrow_exception(refused);
    }
    template <class T, class Op, class Use>
    void use_finished(IndexRange mine, const Accumulator<T>* combined, Use& use) const {
      detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
        alignas(cache_line) T block[detail::block_elements<T>];
        for (std::size_t first = mine.begin; first < mine.end; first += detail::block_elements<T>) {
          const std::size_t count = std::min(detail::block_elements<T>, mine.end - first);
          for (std::size_t i = 0; i < count; ++i)
            block[i] = static_cast<T>(Op::finish(combined[first - mine.begin + i], comm_.size()));
          use(first, std::span<const T>{block, count});
        }
      });
    }

    using Membership<C>::comm_;
  };
};

}  // namespace dist
