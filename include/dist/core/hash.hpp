/// 64-bit non-cryptographic hashes. Processes of the same build compare them; other builds may compute different
/// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>

namespace dist::detail {

/// Adds a number to the hash `seed`.
[[nodiscard]] constexpr std::uint64_t combine(std::uint64_t seed, std::uint64_t number) noexcept {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  const std::uint64_t mixed = ((seed ^ number) + odd) * odd;
  return mixed ^ (mixed >> 29);
}

/// Hash of a sequence of numbers, sensitive to their order. Not an overload of `hash_of`, to avoid attempts to convert
/// texts to std::span.
[[nodiscard]] constexpr std::uint64_t hash_of_numbers(std::span<const std::size_t> numbers) noexcept {
  std::uint64_t hash = 0;
  for (const std::size_t number : numbers) hash = combine(hash, number);
  return hash;
}

/// Hash of a text, computed at compile time for short literals.
[[nodiscard]] DIST_ALWAYS_INLINE constexpr std::uint64_t hash_of(std::string_view text) noexcept {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  std::uint64_t hash = text.size() * odd;
  const char* place = text.data();
  std::size_t left = text.size();
  for (; left >= 8; place += 8, left -= 8) {
    std::uint64_t word = 0;
    if (std::is_constant_evaluated())
      for (std::size_t i = 8; i-- > 0;) word = word << 8 | static_cast<unsigned char>(place[i]);
    else
      std::memcpy(&word, place, 8);
    hash = (hash ^ word) * odd;
    hash ^= hash >> 29;
  }
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < left; ++i) rest |= std::uint64_t{static_cast<unsigned char>(place[i])} << (8 * i);
  return (hash ^ rest) * odd;
}

}  // namespace dist::detail
