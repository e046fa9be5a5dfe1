#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/messages/message_collectives.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/operation.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

namespace dist::mpi {

/// MPI's type of the elements in which values of type `T` are reduced, its Accumulator: of f16 and bf16 that of float,
/// because MPI has no 16-bit floating-point types.
template <Reducible T>
[[nodiscard]] MPI_Datatype datatype() noexcept {
  using Wide = Accumulator<T>;
  if constexpr (std::same_as<Wide, bool>) {
    return MPI_C_BOOL;
  } else if constexpr (std::same_as<Wide, float>) {
    return MPI_FLOAT;
  } else if constexpr (std::same_as<Wide, double>) {
    return MPI_DOUBLE;
  } else {
    static_assert(std::integral<Wide>, "MPI reduces numbers: float, double, integers, bool, f16 and bf16 as float");
    constexpr std::size_t bytes = sizeof(Wide);
    if constexpr (std::signed_integral<Wide>)
      return bytes == 1 ? MPI_INT8_T : bytes == 2 ? MPI_INT16_T : bytes == 4 ? MPI_INT32_T : MPI_INT64_T;
    else
      return bytes == 1 ? MPI_UINT8_T : bytes == 2 ? MPI_UINT16_T : bytes == 4 ? MPI_UINT32_T : MPI_UINT64_T;
  }
}

}  // namespace dist::mpi

namespace dist {

namespace detail {

/// MPI's own collectives, an algorithm of MessageCollectives. MPI counts in int: `most_bytes` at a time.
template <std::size_t most_bytes = std::size_t{1} << 30>
class MpiAlgorithm {
 public:
  /// Throws what a peer has said about its failure: none of the calls can be interrupted.
  MpiAlgorithm(const mpi::Communicator& comm, const CollectiveCall& call) : comm_(comm), call_(call) {
    comm.look_for_failures();
  }

  void broadcast(std::size_t root, Elements values) const {
    const Watchdog::Guard guard{comm_.watchdog(), call_};
    broadcast_bytes(root, values.bytes({0, values.count()}));
  }

  void gather(Elements all, FunctionRef<IndexRange(std::size_t)> part) const {
    const std::span<std::byte> all_values = all.bytes({0, all.count()});
    if (all_values.empty()) return;
    const Watchdog::Guard guard{comm_.watchdog(), call_};
    if (all_values.size() > most_bytes) {
      for (std::size_t rank = 0; rank < comm_.size(); ++rank) broadcast_bytes(rank, all.bytes(part(rank)));
      return;
    }
    int* const counts = counts_of_members();
    int* const places = counts + comm_.size();
    bool are_equal = true;
    for (std::size_t rank = 0; rank < comm_.size(); ++rank) {
      counts[rank] = static_cast<int>(all.bytes(part(rank)).size());
      places[rank] = rank == 0 ? 0 : places[rank - 1] + counts[rank - 1];
      are_equal = are_equal && counts[rank] == counts[0];
    }
    if (are_equal)
      DIST_MPI_CALL(MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all_values.data(), counts[0], MPI_BYTE, comm_.native()));
    else
      DIST_MPI_CALL(
          MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, all_values.data(), counts, places, MPI_BYTE, comm_.native()));
  }

  template <class T, class Op>
  void all_reduce(Op op, std::span<T> values) const {
    if constexpr (std::same_as<Accumulator<T>, T>) {
      combine<T, Op>(values);
      if constexpr (!std::derived_from<Op, IdentityFinish>)
        with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
          for (T& value : values) value = Op::finish(value, comm_.size());
        });
    } else {
      const std::span<Accumulator<T>> wide = widened(std::span<const T>{values});
      combine<T, Op>(wide);
      finish_sums<T>(op, comm_.size(), std::span<const Accumulator<T>>{wide}, 0,
                     [&](std::size_t first, std::span<const T> reduced)
                         DIST_INLINE_LAMBDA { std::copy(reduced.begin(), reduced.end(), values.data() + first); });
    }
  }

  template <class T, class Op, class Use>
  void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
    using Wide = Accumulator<T>;
    const auto shard = [&](std::size_t rank) { return message_shard(values.size(), rank, comm_.size()); };
    std::span<const Wide> operand;
    if constexpr (std::same_as<Wide, T>)
      operand = values;
    else
      operand = widened(values);
    const IndexRange mine = shard(comm_.rank());
    const std::span<Wide> sums = scratch_of<Wide>(comm_, 2, mine.size());
    {
      const Watchdog::Guard guard{comm_.watchdog(), call_};
      if (operand.size() <= most_elements) {
        int* const counts = counts_of_members();
        for (std::size_t rank = 0; rank < comm_.size(); ++rank) counts[rank] = static_cast<int>(shard(rank).size());
        DIST_MPI_CALL(MPI_Reduce_scatter(operand.data(), sums.data(), counts, mpi::datatype<T>(),
                                         mpi::operation<Op, T>(), comm_.native()));
      } else {
        for (std::size_t rank = 0; rank < comm_.size(); ++rank)
          for_each_piece(shard(rank), [&](IndexRange piece) {
            DIST_MPI_CALL(MPI_Reduce(operand.data() + piece.begin,
                                     sums.data() + (rank == comm_.rank() ? piece.begin - mine.begin : 0),
                                     static_cast<int>(piece.size()), mpi::datatype<T>(), mpi::operation<Op, T>(),
                                     static_cast<int>(rank), comm_.native()));
          });
      }
    }
    finish_sums<T>(op, comm_.size(), std::span<const Wide>{sums}, mine.begin, use);
  }

 private:
  static constexpr std::size_t most_elements = most_bytes / sizeof(double);

  template <class Visit>
  static void for_each_piece(IndexRange range, Visit&& visit) {
    for (std::size_t first = range.begin; first < range.end; first += most_elements)
      visit(IndexRange{first, std::min(first + most_elements, range.end)});
  }

  /// Room for two numbers of each member.
  [[nodiscard]] int* counts_of_members() const { return scratch_of<int>(comm_, 1, 2 * comm_.size()).data(); }

  template <class T>
  [[nodiscard]] std::span<Accumulator<T>> widened(std::span<const T> values) const {
    const std::span<Accumulator<T>> wide = scratch_of<Accumulator<T>>(comm_, 0, values.size());
    widen_into(values, wide.data());
    return wide;
  }

  template <class T, class Op>
  void combine(std::span<Accumulator<T>> values) const {
    const Watchdog::Guard guard{comm_.watchdog(), call_};
    for_each_piece({0, values.size()}, [&](IndexRange piece) {
      DIST_MPI_CALL(MPI_Allreduce(MPI_IN_PLACE, values.data() + piece.begin, static_cast<int>(piece.size()),
                                  mpi::datatype<T>(), mpi::operation<Op, T>(), comm_.native()));
    });
  }

  void broadcast_bytes(std::size_t root, std::span<std::byte> bytes) const {
    for (std::size_t first = 0; first < bytes.size(); first += most_bytes)
      DIST_MPI_CALL(MPI_Bcast(bytes.data() + first, static_cast<int>(std::min(most_bytes, bytes.size() - first)),
                              MPI_BYTE, static_cast<int>(root), comm_.native()));
  }

  const mpi::Communicator& comm_;
  const CollectiveCall& call_;
};

}  // namespace detail

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
  class On {
    static_assert(fits<C>, "MpiAllReduce needs processes that MPI connects: use it with mpi::Communicator");
  };

  template <class C>
    requires fits<C>
  class On<C> : public detail::MessageCollectives<C, detail::MpiAlgorithm<>> {
   public:
    using detail::MessageCollectives<C, detail::MpiAlgorithm<>>::MessageCollectives;

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      return On{this->comm_.with_timeout(timeout)};
    }
  };
};

}  // namespace dist
