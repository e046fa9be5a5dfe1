#pragma once

#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace dist::detail {

/// The number that `digits` writes: decimal digits only, without sign or space, at most `most`.
[[nodiscard]] inline std::optional<std::size_t> whole_number(
    std::string_view digits, std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept {
  std::size_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, status] = std::from_chars(digits.data(), end, number);
  if (status != std::errc{} || stopped != end || number > most) return std::nullopt;
  return number;
}

}  // namespace dist::detail
