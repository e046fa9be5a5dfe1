#pragma once

#include <concepts>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::mpi {

namespace detail {

/// `Op` without `finish`, which no part of MPI's work depends on.
template <class Op>
struct Finished {
  using Type = Op;
};
template <class Op>
struct Finished<dist::detail::Unfinished<Op>> : Finished<Op> {};

/// What MPI calls for an operation that it does not know: inout[i] = in[i] (+) inout[i], `in` being of lower ranks.
template <class Op, class Wide>
void combine(void* in, void* inout, int* length, MPI_Datatype*) {
  const Wide* const lower = static_cast<const Wide*>(in);
  Wide* const combined = static_cast<Wide*>(inout);
  for (int i = 0; i < *length; ++i) combined[i] = Op{}(lower[i], combined[i]);
}

/// Made once and kept for as long as MPI runs. Said not to be commutative, so that MPI combines in rank order.
template <class Op, class Wide>
[[nodiscard]] MPI_Op made_operation() {
  static const MPI_Op made = [] {
    MPI_Op operation = MPI_OP_NULL;
    check(MPI_Op_create(combine<Op, Wide>, 0, &operation), "MPI_Op_create");
    return operation;
  }();
  return made;
}

}  // namespace detail

/// MPI's operation that combines values of type `T`, in their Accumulator, as `Op` does: MPI's own where it has one,
/// and else one that calls `Op`. Without `Op::finish`, which the caller applies to what MPI has combined.
template <class Given, class T>
  requires ReduceOp<Given, T>
[[nodiscard]] MPI_Op operation() {
  using Op = typename detail::Finished<Given>::Type;
  using Wide = Accumulator<T>;
  constexpr bool truth = std::same_as<Wide, bool>;  // MPI compares and masks numbers only
  if constexpr (std::same_as<Op, Sum> || std::same_as<Op, Mean>)
    return MPI_SUM;
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
    return detail::made_operation<Op, Wide>();
}

}  // namespace dist::mpi
