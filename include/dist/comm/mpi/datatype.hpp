#pragma once

#include <concepts>
#include <cstddef>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/reduce_op.hpp>

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
