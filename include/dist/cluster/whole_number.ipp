#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

#include <dist/cluster/whole_number.hpp>

namespace dist::detail {

DIST_INLINE std::optional<std::size_t> whole_number(std::string_view digits, std::size_t most) noexcept {
  std::size_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, status] = std::from_chars(digits.data(), end, number);
  if (status != std::errc{} || stopped != end || number > most) return std::nullopt;
  return number;
}

}  // namespace dist::detail
