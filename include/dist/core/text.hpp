#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace dist {

namespace detail {

inline void append_text(std::string& out, std::string_view part) { out.append(part); }
inline void append_text(std::string& out, char part) { out.push_back(part); }

template <class Number>
  requires std::integral<Number> || std::floating_point<Number>
void append_text(std::string& out, Number part) { out.append(std::to_string(part)); }

}  // namespace detail

/// Joins strings, characters and numbers into one string: `text("replica ", 3, " of ", 4)`.
template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  std::string joined;
  (detail::append_text(joined, parts), ...);
  return joined;
}

}  // namespace dist
