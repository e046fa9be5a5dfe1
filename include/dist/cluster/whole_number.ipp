#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <dist/cluster/whole_number.hpp>

namespace dist::detail {

DIST_INLINE std::optional<std::size_t> whole_number(std::string_view digits, std::size_t most) noexcept {
  if (digits.empty()) return std::nullopt;
  std::size_t number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    const auto value = static_cast<std::size_t>(digit - '0');
    if (value > most || number > (most - value) / 10) return std::nullopt;
    number = 10 * number + value;
  }
  return number;
}

}  // namespace dist::detail
