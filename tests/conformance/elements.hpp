// Operands of the cross-device suites, and expected results from independent arithmetic.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <dist/core/reduce_op.hpp>

namespace conformance {

inline std::int64_t small_number(std::size_t rank, std::size_t i) {
  return static_cast<std::int64_t>((i * 7 + rank * 3) % 5 + 1);
}

/// Returns a member's element before a reduction. Some integers have their highest bits set, so that sums and products
/// wrap around, and unsigned types are not compared as signed ones; bools are mixed; other values are small enough for
/// exact results.
template <class T>
T element(std::size_t rank, std::size_t i) {
  if constexpr (std::same_as<T, bool>)
    return small_number(rank, i) > 2;
  else if constexpr (std::integral<T>)
    return static_cast<T>(static_cast<std::uint64_t>(small_number(rank, i)) * 0x5555555555555555U);
  else
    return static_cast<T>(static_cast<float>(small_number(rank, i)));
}

/// Combines integers modulo 2^64, which implies the result modulo any smaller power of two.
template <class Op, class T>
T combined(T a, T b) {
  using Wide = std::conditional_t<std::integral<T>, std::uint64_t, T>;
  if constexpr (std::same_as<Op, dist::Sum> || std::same_as<Op, dist::Mean>)
    return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  else if constexpr (std::same_as<Op, dist::Prod>)
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  else if constexpr (std::same_as<Op, dist::Min>)
    return std::min(a, b);
  else if constexpr (std::same_as<Op, dist::Max>)
    return std::max(a, b);
  else if constexpr (std::same_as<Op, dist::BitAnd>)
    return static_cast<T>(a & b);
  else if constexpr (std::same_as<Op, dist::BitOr>)
    return static_cast<T>(a | b);
  else if constexpr (std::same_as<Op, dist::BitXor>)
    return static_cast<T>(a ^ b);
  else
    return Op{}(a, b);
}

template <class T, class Op>
T expected_reduction(std::size_t members, std::size_t i) {
  using Wide = std::conditional_t<std::integral<T>, T, double>;
  Wide total = static_cast<Wide>(element<T>(0, i));
  for (std::size_t rank = 1; rank < members; ++rank)
    total = combined<Op>(total, static_cast<Wide>(element<T>(rank, i)));
  if constexpr (std::same_as<Op, dist::Mean>)
    return static_cast<T>(total / static_cast<double>(members));
  else
    return static_cast<T>(total);
}

/// Returns a member's element where one member has a NaN of some sign, or another zero or infinity than all others.
template <class T>
T special_element(std::size_t members, std::size_t rank, std::size_t i) {
  const bool odd = rank == i / 8 % members;
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = i / 8 % 3 == 0 ? -std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::quiet_NaN();
  const auto number = static_cast<float>(small_number(rank, i) - 3);
  switch (i % 8) {
    case 0:
      return static_cast<T>(odd ? nan : number);
    case 1:
      return static_cast<T>(odd ? nan : infinity);
    case 2:
      return static_cast<T>(odd ? 0.0F : -0.0F);
    case 3:
      return static_cast<T>(odd ? -0.0F : 0.0F);
    case 4:
      return static_cast<T>(odd ? infinity : -infinity);
    default:
      return static_cast<T>(number);
  }
}

/// Returns the result of Max and Min for the special elements of several members, bit by bit.
template <class T, class Op>
T expected_extremum(std::size_t members, std::size_t i) {
  constexpr bool is_max = std::same_as<Op, dist::Max>;
  const float infinity = std::numeric_limits<float>::infinity();
  switch (i % 8) {
    case 0:
    case 1:
      return std::numeric_limits<T>::quiet_NaN();
    case 2:
    case 3:
      return static_cast<T>(is_max ? 0.0F : -0.0F);
    case 4:
      return static_cast<T>(is_max ? infinity : -infinity);
    default:
      break;
  }
  std::int64_t extremum = small_number(0, i);
  for (std::size_t rank = 1; rank < members; ++rank) extremum = combined<Op>(extremum, small_number(rank, i));
  return static_cast<T>(static_cast<float>(extremum - 3));
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

}  // namespace conformance
