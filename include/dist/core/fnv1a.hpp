#pragma once

#include <cstdint>
#include <string_view>

namespace dist::detail {

/// The checksum FNV-1a of 64 bits (Fowler, Noll and Vo), which tells apart what differs by chance, not by intent.
struct Fnv1a {
  std::uint64_t value = 14695981039346656037U;

  constexpr void add(std::uint64_t symbol) { value = (value ^ symbol) * 1099511628211U; }
  constexpr void add(std::string_view text) {
    for (const char character : text) add(std::uint64_t{static_cast<unsigned char>(character)});
  }
};

}  // namespace dist::detail
