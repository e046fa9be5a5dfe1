#pragma once

#include <concepts>
#include <cstddef>

namespace dist::io {

/// The unsigned number whose little-endian bytes begin at `bytes`.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T load_little_endian(const std::byte* bytes) noexcept {
  T number = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    number = static_cast<T>(number | static_cast<T>(static_cast<T>(bytes[i]) << (8 * i)));
  return number;
}

/// Writes the little-endian bytes of `number` to `bytes`.
template <std::unsigned_integral T>
constexpr void store_little_endian(T number, std::byte* bytes) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = std::byte{static_cast<unsigned char>(number >> (8 * i))};
}

}  // namespace dist::io
