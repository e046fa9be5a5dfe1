#pragma once

#include <concepts>
#include <cstddef>
#include <cstdio>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

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

/// What says itself what it is as a text, such as a shape or a tensor.
template <class T>
concept HasText = requires(const T& value) {
  { to_string(value) } -> std::same_as<std::string>;
};
template <HasText T>
void append_text(std::string& out, const T& part) {
  out.append(to_string(part));
}

}  // namespace detail

/// Joins strings, characters and numbers into one string: `text("replica ", 3, " of ", 4)`.
template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  std::string joined;
  (detail::append_text(joined, parts), ...);
  return joined;
}

/// Prints what has a `to_string` of ours: shapes, tensors, indexed slices, per-replica values.
template <class T>
  requires(std::is_class_v<T>&& detail::HasText<T>)
std::ostream& operator<<(std::ostream& out, const T& value) { return out << to_string(value); }

}  // namespace dist
