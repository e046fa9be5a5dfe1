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
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

namespace dist::mpi {

namespace detail {

/// True if MPI's operation computes `Op` of `Wide` in every case. MPI does not define integer overflow, or minimum and
/// maximum of NaN. Open MPI's vector code saturates sums of small integers, and compares unsigned integers as signed
/// ones.
template <class Op, class Wide>
inline constexpr bool defined_by_mpi = [] {
  if constexpr (std::same_as<Op, Sum> || std::same_as<Op, Mean> || std::same_as<Op, Prod>)
    return std::floating_point<Wide>;
  else if constexpr (std::same_as<Op, Min> || std::same_as<Op, Max>)
    return std::same_as<Wide, bool> || std::signed_integral<Wide>;
  else
    return std::same_as<Op, BitAnd> || std::same_as<Op, BitOr> || std::same_as<Op, BitXor>;
}();

/// True if `Op` gives the same bits in any order, so that MPI may choose its fastest algorithm.
template <class Op, class Wide>
inline constexpr bool commutes = std::same_as<Op, Min> || std::same_as<Op, Max> ||
                                 (std::integral<Wide> && (std::same_as<Op, Sum> || std::same_as<Op, Prod>));

/// MPI callback of our operations: inout[i] = in[i] (+) inout[i], where `in` belongs to lower ranks.
template <class Op, class Wide>
void combine(void* in, void* inout, int* length, MPI_Datatype*) {
  const auto count = static_cast<std::size_t>(*length);
  dist::detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
    const Wide* const lower = static_cast<const Wide*>(in);
    Wide* const combined = static_cast<Wide*>(inout);
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < count; ++i) combined[i] = Op{}(lower[i], combined[i]);
  });
}

/// Returns the operation, created once and kept while MPI runs. If not commutative, MPI combines in rank order.
template <class Op, class Wide>
[[nodiscard]] MPI_Op made_operation() {
  static const MPI_Op made = [] {
    MPI_Op operation = MPI_OP_NULL;
    DIST_MPI_CALL(MPI_Op_create(combine<Op, Wide>, commutes<Op, Wide> ? 1 : 0, &operation));
    return operation;
  }();
  return made;
}

}  // namespace detail

/// Returns the MPI operation that combines values of type `T`, in their Accumulator, like `Op`: a predefined one if it
/// gives the same results for all values, else one that calls `Op`. Does not include `Op::finish`, which the caller
/// applies.
template <class Given, class T>
  requires ReduceOp<Given, T>
[[nodiscard]] MPI_Op operation() {
  using Op = typename dist::detail::FinishedOf<Given>::Type;
  using Wide = Accumulator<T>;
  constexpr bool truth = std::same_as<Wide, bool>;  // MPI_MIN, MPI_MAX and bitwise operations only support numbers
  if constexpr (!detail::defined_by_mpi<Op, Wide>)
    return detail::made_operation<Op, Wide>();
  else if constexpr (std::same_as<Op, Prod>)
    return MPI_PROD;
  else if constexpr (std::same_as<Op, Min>)
    return truth ? MPI_LAND : MPI_MIN;
  else if constexpr (std::same_as<Op, Max>)
    return truth ? MPI_LOR : MPI_MAX;
  else if constexpr (std::same_as<Op, BitAnd>)
    return truth ? MPI_LAND : MPI_BAND;
  else if constexpr (std::same_as<Op, BitOr>)
    return truth ? MPI_LOR : MPI_BOR;
  else if constexpr (std::same_as<Op, BitXor>)
    return truth ? MPI_LXOR : MPI_BXOR;
  else
    return MPI_SUM;
}

/// The MPI type of the Accumulator of `T`: MPI_FLOAT for f16 and bf16, because MPI has no 16-bit floating-point types.
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

/// A Reduction performed by MPI, in the Accumulator.
struct MpiReduction : Reduction {
  MPI_Datatype (*datatype)() noexcept;
  MPI_Op (*operation)();
};
template <class T, class Op>
inline constexpr MpiReduction mpi_reduction_of = [] {
  MpiReduction record{reduction_of<T, Op>, mpi::datatype<T>, mpi::operation<Op, T>};
  record.partial = &mpi_reduction_of<Accumulator<T>, PartialOf<Op>>;
  return record;
}();

/// MPI's collectives, an algorithm of MessageCollectives. MPI counts in int, so calls are split into pieces of
/// `most_bytes`.
template <std::size_t most_bytes = std::size_t{1} << 30>
class MpiAlgorithm {
 public:
  using Record = MpiReduction;
  template <class T, class Op>
  [[nodiscard]] static constexpr const Record& record() noexcept {
    return mpi_reduction_of<T, Op>;
  }

  /// Throws a peer's reported failure, because none of the calls can be interrupted.
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

  void all_reduce_bytes(const MpiReduction& reduction, std::span<std::byte> values) const {
    const std::size_t elements = values.size() / reduction.size;
    const std::span<std::byte> wide = reduction.widens() ? widened(reduction, values) : values;
    {
      const Watchdog::Guard guard{comm_.watchdog(), call_};
      for_each_piece({0, elements}, [&](IndexRange piece) {
        DIST_MPI_CALL(MPI_Allreduce(MPI_IN_PLACE, wide.data() + piece.begin * reduction.wide_size,
                                    static_cast<int>(piece.size()), reduction.datatype(), reduction.operation(),
                                    comm_.native()));
      });
    }
    if (reduction.widens() || reduction.finishes)
      reduction.finish(values.data(), wide.data(), nullptr, elements, reduction.finished_for(comm_.size()));
  }

  void reduce_scatter(const MpiReduction& reduction, std::span<const std::byte> values, UseReduced use) const {
    const std::size_t elements = values.size() / reduction.size;
    const std::size_t size = reduction.wide_size;
    const auto shard = [&](std::size_t rank) { return message_shard(elements, rank, comm_.size()); };
    const std::byte* const operand = reduction.widens() ? widened(reduction, values).data() : values.data();
    const IndexRange mine = shard(comm_.rank());
    const std::span<std::byte> sums = scratch_of<std::byte>(comm_, 2, mine.size() * size);
    {
      const Watchdog::Guard guard{comm_.watchdog(), call_};
      if (elements <= most_elements) {
        int* const counts = counts_of_members();
        for (std::size_t rank = 0; rank < comm_.size(); ++rank) counts[rank] = static_cast<int>(shard(rank).size());
        DIST_MPI_CALL(MPI_Reduce_scatter(operand, sums.data(), counts, reduction.datatype(), reduction.operation(),
                                         comm_.native()));
      } else {
        for (std::size_t rank = 0; rank < comm_.size(); ++rank)
          for_each_piece(shard(rank), [&](IndexRange piece) {
            DIST_MPI_CALL(MPI_Reduce(operand + piece.begin * size,
                                     sums.data() + (rank == comm_.rank() ? piece.begin - mine.begin : 0) * size,
                                     static_cast<int>(piece.size()), reduction.datatype(), reduction.operation(),
                                     static_cast<int>(rank), comm_.native()));
          });
      }
    }
    use_finished(reduction, mine, sums.data(), nullptr, comm_.size(), use);
  }

 private:
  static constexpr std::size_t most_elements = most_bytes / sizeof(double);

  template <class Visit>
  static void for_each_piece(IndexRange range, Visit&& visit) {
    for (std::size_t first = range.begin; first < range.end; first += most_elements)
      visit(IndexRange{first, std::min(first + most_elements, range.end)});
  }

  [[nodiscard]] int* counts_of_members() const { return scratch_of<int>(comm_, 1, 2 * comm_.size()).data(); }

  [[nodiscard]] std::span<std::byte> widened(const Reduction& reduction, std::span<const std::byte> values) const {
    const std::size_t elements = values.size() / reduction.size;
    const std::span<std::byte> wide = scratch_of<std::byte>(comm_, 0, elements * reduction.wide_size);
    reduction.widen(wide.data(), values.data(), elements);
    return wide;
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

/// MPI's collectives, tuned for network and machine: MPI_Allreduce, MPI_Bcast and so on. Uses the blocking ones,
/// because Open MPI's nonblocking ones take up to twice as long. Missing members are detected when the call is
/// announced; a Watchdog monitors the call itself.
///
/// MPI chooses the order of summation by count and number of members, so the bits are the same in every run. Operands
/// need no special memory.
struct MpiAllReduce {
  static constexpr std::string_view name = "MpiAllReduce";
  static constexpr bool sums_in_rank_order = false;
  /// Connects all processes itself, including processes on one node (MultiWorkerOptions::hierarchical).
  static constexpr bool joins_all_processes = true;

  /// True for communicators that the policy supports.
  template <class C>
  static constexpr bool fits = std::same_as<C, mpi::Communicator>;

  /// The collectives of the policy; this primary template explains unsupported communicators.
  template <class C>
  class On {
    static_assert(fits<C>, "MpiAllReduce needs processes that MPI connects: use it with mpi::Communicator");
  };

  /// The collectives of members connected by MPI.
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
