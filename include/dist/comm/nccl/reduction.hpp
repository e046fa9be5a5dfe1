#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <dist/comm/nccl/api.hpp>
#include <dist/core/config.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::nccl {

namespace detail {
/// Returns NCCL's name of an element type, or ncclNumTypes if it has none.
template <class T>
[[nodiscard]] constexpr ncclDataType_t type_of() {
  if constexpr (std::same_as<T, float>)
    return ncclFloat32;
  else if constexpr (std::same_as<T, double>)
    return ncclFloat64;
  else if constexpr (std::same_as<T, Float16>)
    return ncclFloat16;
  else if constexpr (std::same_as<T, BFloat16>)
    return ncclBfloat16;
  else if constexpr (std::same_as<T, bool> || !std::integral<T> || sizeof(T) == 2)
    return ncclNumTypes;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? ncclInt8 : ncclUint8;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? ncclInt32 : ncclUint32;
  else
    return std::is_signed_v<T> ? ncclInt64 : ncclUint64;
}

/// Returns NCCL's operation for a reduction without its final step, or ncclNumOps if it has none. A mean is a sum that
/// is divided afterwards: ncclAvg divides the addends, which rounds differently.
template <class Op>
[[nodiscard]] constexpr ncclRedOp_t operation_of() {
  if constexpr (std::same_as<Op, Sum> || std::same_as<Op, Mean>)
    return ncclSum;
  else if constexpr (std::same_as<Op, Min>)
    return ncclMin;
  else if constexpr (std::same_as<Op, Max>)
    return ncclMax;
  else if constexpr (std::same_as<Op, Prod>)
    return ncclProd;
  else
    return ncclNumOps;
}
template <class Op>
inline constexpr bool is_extremum = std::same_as<Op, Min> || std::same_as<Op, Max>;
}  // namespace detail

/// True if NCCL reduces elements of type T by `Op`.
template <class T, class Op>
inline constexpr bool reduces = detail::type_of<T>() != ncclNumTypes&& detail::operation_of<Op>() != ncclNumOps;

/// Returns true if NCCL reduces elements of type T by `Op`. Otherwise fails to compile with a readable error.
template <class T, class Op>
[[nodiscard]] constexpr bool require_reduction() {
  constexpr bool has_type = detail::type_of<T>() != ncclNumTypes;
  static_assert(
      has_type,
      "NCCL cannot reduce bool or 16-bit integers: use Mirrored<DirectAllReduce, Cuda>, or another element type");
  constexpr bool has_operation = detail::operation_of<Op>() != ncclNumOps;
  static_assert(!has_type || has_operation,
                "NCCL supports only dist::sum, dist::mean, dist::min, dist::max and dist::prod: for a bitwise "
                "reduction or your own reduction use Mirrored<DirectAllReduce, Cuda>");
  return has_type && has_operation;
}

/// Maps floating-point numbers to integers in the order by which dist::min and dist::max find extrema. NCCL's own
/// extrema ignore NaN and do not order zeros. NaN is beyond all numbers, -0 below +0. 16-bit numbers have the keys of
/// floats.
template <Floating T, class Op>
struct Key {
  /// The floating-point type whose bits become the key.
  using Wide = Accumulator<T>;
  /// The type of keys.
  using Type = std::conditional_t<sizeof(Wide) == 4, std::int32_t, std::int64_t>;

  /// The largest key.
  static constexpr Type highest = static_cast<Type>(~std::make_unsigned_t<Type>{0} >> 1);
  /// The key of NaN, which wins every reduction.
  static constexpr Type of_nan = std::same_as<Op, Max> ? highest : -highest - 1;

  /// Returns the key of a number.
  [[nodiscard]] DIST_HD static constexpr Type of(T number) {
    const auto wide = static_cast<Wide>(number);
    if (!(wide == wide)) return of_nan;
    const Type bits = ::dist::detail::bits_as<Type>(wide);
    return bits >= 0 ? bits : bits ^ highest;
  }
  /// Returns the number with that key.
  [[nodiscard]] DIST_HD static constexpr T number(Type key) {
    if (key == of_nan) return static_cast<T>(::dist::detail::quiet_nan<Wide>);
    return static_cast<T>(::dist::detail::bits_as<Wide>(key >= 0 ? key : key ^ highest));
  }
};

}  // namespace dist::nccl
