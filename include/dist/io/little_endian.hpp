#pragma once

#include <concepts>
#include <cstddef>

namespace dist::io {

/// Loads a little-endian unsigned number from `bytes`.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T load_little_endian(const std::byte* bytes) noexcept {
  T number = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    number = static_cast<T>(number | static_cast<T>(static_cast<T>(bytes[i]) << (8 * i)));
  return number;
}

/// Stores `number` to `bytes` in little-endian order.
template <std::unsigned_integral T>
constexpr void store_little_endian(T number, std::byte* bytes) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = std::byte{static_cast<unsigned char>(number >> (8 * i))};
}

}  // namespace dist::io
