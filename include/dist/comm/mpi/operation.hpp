#pragma once

#include <concepts>
#include <cstddef>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

namespace dist::mpi {

namespace detail {

/// `Op` without `finish`, which no part of MPI's work depends on.
template <class Op>
struct Finished {
  using Type = Op;
};
template <class Op>
struct Finished<dist::detail::Unfinished<Op>> : Finished<Op> {};

/// Whether MPI's own operation computes `Op` of `Wide` in every case. MPI says nothing about integers that overflow,
/// nor about the minimum and maximum of NaN; and Open MPI's vector code saturates sums of small integers, and compares
/// unsigned integers as signed ones.
template <class Op, class Wide>
inline constexpr bool defined_by_mpi = [] {
  if constexpr (std::same_as<Op, Sum> || std::same_as<Op, Mean> || std::same_as<Op, Prod>)
    return std::floating_point<Wide>;
  else if constexpr (std::same_as<Op, Min> || std::same_as<Op, Max>)
    return std::same_as<Wide, bool> || std::signed_integral<Wide>;
  else
    return std::same_as<Op, BitAnd> || std::same_as<Op, BitOr> || std::same_as<Op, BitXor>;
}();

/// Whether `Op` gives the same bits in every order, so that MPI may choose its fastest algorithm.
template <class Op, class Wide>
inline constexpr bool commutes = std::same_as<Op, Min> || std::same_as<Op, Max> ||
                                 (std::integral<Wide> && (std::same_as<Op, Sum> || std::same_as<Op, Prod>));

/// What MPI calls for an operation of ours: inout[i] = in[i] (+) inout[i], `in` being of lower ranks.
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

/// Made once and kept for as long as MPI runs. One that is not commutative MPI combines in rank order.
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

/// MPI's operation that combines values of type `T`, in their Accumulator, as `Op` does: MPI's own where that computes
/// the same for all values, and else one that calls `Op`. Without `Op::finish`, which the caller applies to what MPI
/// has combined.
template <class Given, class T>
  requires ReduceOp<Given, T>
[[nodiscard]] MPI_Op operation() {
  using Op = typename detail::Finished<Given>::Type;
  using Wide = Accumulator<T>;
  constexpr bool truth = std::same_as<Wide, bool>;  // MPI compares and masks numbers only
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

}  // namespace dist::mpi
