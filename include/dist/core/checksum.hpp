#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dist::detail {

/// The checksum of the counts so far and one more (FNV-1a, a word at a time).
[[nodiscard]] constexpr std::uint64_t extended_checksum(std::uint64_t checksum, std::size_t count) noexcept {
  return (checksum ^ 14695981039346656037u ^ count) * 1099511628211u;
}

/// A number that differs for different counts, also where their sums are equal.
[[nodiscard]] constexpr std::uint64_t checksum_of(std::span<const std::size_t> counts) noexcept {
  std::uint64_t checksum = 0;
  for (const std::size_t count : counts) checksum = extended_checksum(checksum, count);
  return checksum;
}

}  // namespace dist::detail
