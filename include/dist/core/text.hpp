#pragma once

#include <concepts>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace dist {

namespace detail {

inline void append_text(std::string& out, std::string_view part) { out.append(part); }
inline void append_text(std::string& out, char part) { out.push_back(part); }

template <std::integral Number>
void append_text(std::string& out, Number part) {
  out.append(std::to_string(part));
}

/// With six significant digits and no zeros after them: 0.5, 600, 1e-09.
inline void append_text(std::string& out, double part) {
  char digits[32];
  const int count = std::snprintf(digits, sizeof digits, "%g", part);
  out.append(digits, static_cast<std::size_t>(count));
}

}  // namespace detail

/// Joins strings, characters and numbers into one string: `text("replica ", 3, " of ", 4)`.
template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  std::string joined;
  (detail::append_text(joined, parts), ...);
  return joined;
}

}  // namespace dist
