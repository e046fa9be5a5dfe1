#pragma once

#include <cstdio>

#include <dist/core/text.hpp>

namespace dist {

namespace detail {

DIST_INLINE void append_text(std::string& out, std::string_view part) { out.append(part); }
DIST_INLINE void append_number(std::string& out, long long part) { out.append(std::to_string(part)); }
DIST_INLINE void append_number(std::string& out, unsigned long long part) { out.append(std::to_string(part)); }

DIST_INLINE void append_text(std::string& out, double part) {
  char digits[32];
  const int count = std::snprintf(digits, sizeof digits, "%g", part);
  out.append(digits, static_cast<std::size_t>(count));
}

DIST_INLINE void append_text(std::string& out, std::chrono::nanoseconds part) {
  char digits[32];
  int count = std::snprintf(digits, sizeof digits, "%.3f", static_cast<double>(part.count()) * 1e-9);
  while (digits[count - 1] == '0') --count;
  if (digits[count - 1] < '0' || digits[count - 1] > '9') --count;  // the locale's decimal point
  out.append(digits, static_cast<std::size_t>(count)).append(" s");
}

/// Returns the size in bytes of the UTF-8 character at the start of `words`; 0 if it is a control character or invalid.
[[nodiscard]] constexpr std::size_t visible_character(std::string_view words) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(words[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return lead >= ' ' && lead != 0x7f ? 1 : 0;
  const std::size_t size = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (size == 0 || words.size() < size) return 0;
  // Excludes two-byte control characters and overlong encodings.
  const unsigned least = lead == 0xc2 ? 0xa0 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  if (at(1) < least) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((at(i) & 0xc0U) != 0x80U) return 0;
  return size;
}

}  // namespace detail

DIST_INLINE std::string printable(std::string_view words, std::size_t longest, std::string_view as_is) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  for (std::size_t i = 0; i < words.size();) {
    if (shown.size() >= longest) {
      shown.append("... (").append(std::to_string(words.size())).append(" bytes)");
      break;
    }
    const bool kept = as_is.find(words[i]) != std::string_view::npos;
    if (const std::size_t size = kept ? 1 : detail::visible_character(words.substr(i))) {
      shown.append(words.substr(i, size));
      i += size;
    } else {
      const auto byte = static_cast<unsigned char>(words[i++]);
      shown.append("\\x").push_back(digits[byte >> 4]);
      shown.push_back(digits[byte & 15U]);
    }
  }
  return shown;
}

DIST_INLINE std::string quoted(std::string_view words, std::size_t longest) {
  std::string shown = "'";
  return shown.append(printable(words, longest)).append("'");
}

}  // namespace dist
