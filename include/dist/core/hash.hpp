/// Numbers that differ for what differs, as far as 64 bits can: by chance, not against intent. Processes of one build compare
/// them; another build may have others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist::detail {

/// The hash of what `seed` is the hash of, and one more number.
[[nodiscard]] constexpr std::uint64_t combine(std::uint64_t seed, std::uint64_t number) noexcept {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  const std::uint64_t mixed = ((seed ^ number) + odd) * odd;
  return mixed ^ (mixed >> 29);
}

/// The hash of numbers, also where their sums are equal. It has a name of its own, as the compiler would try for each text whether a
/// std::span can be made of it.
[[nodiscard]] constexpr std::uint64_t hash_of_numbers(std::span<const std::size_t> numbers) noexcept {
  std::uint64_t hash = 0;
  for (const std::size_t number : numbers) hash = combine(hash, number);
  return hash;
}

/// The hash of a text. The compiler calculates it where the text is a short literal.
[[nodiscard]] DIST_ALWAYS_INLINE std::uint64_t hash_of(std::string_view text) noexcept {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  std::uint64_t hash = text.size() * odd;
  const char* place = text.data();
  std::size_t left = text.size();
  for (; left >= 8; place += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, place, 8);
    hash = (hash ^ word) * odd;
    hash ^= hash >> 29;
  }
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < left; ++i) rest |= std::uint64_t{static_cast<unsigned char>(place[i])} << (8 * i);
  return (hash ^ rest) * odd;
}

}  // namespace dist::detail
