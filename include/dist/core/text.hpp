#pragma once

#include <concepts>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>

namespace dist {

namespace detail {

// Not templates: messages call these for each part.
void append_text(std::string& out, std::string_view part);
inline void append_text(std::string& out, char part) { append_text(out, std::string_view{&part, 1}); }
void append_number(std::string& out, long long part);
void append_number(std::string& out, unsigned long long part);
template <std::integral Number>
void append_text(std::string& out, Number part) {
  append_number(out, static_cast<std::conditional_t<std::is_signed_v<Number>, long long, unsigned long long>>(part));
}

/// With six significant digits and without trailing zeros: 0.5, 600, 1e-09.
void append_text(std::string& out, double part);

/// In seconds, rounded to milliseconds: 0.25 s, 600 s.
void append_text(std::string& out, std::chrono::nanoseconds part);

/// A type with a `to_string`, such as a shape or a tensor.
template <class T>
concept HasText = requires(const T& value) {
  { to_string(value) } -> std::same_as<std::string>;
};
template <HasText T>
void append_text(std::string& out, const T& part) {
  out.append(to_string(part));
}

}  // namespace detail

/// Escapes `words` for a terminal: control characters and invalid UTF-8 are written as "\x1b" etc., except the
/// characters in `as_is`. Text longer than about `longest` bytes is cut, and its length appended.
[[nodiscard]] std::string printable(std::string_view words, std::size_t longest, std::string_view as_is = {});

/// Quotes input from a file, the environment or a peer for a message: "'words'", escaped and cut after about `longest`
/// bytes.
[[nodiscard]] std::string quoted(std::string_view words, std::size_t longest = 80);
/// Overload for std::string, for which std::quoted would be a candidate if a program includes `<iomanip>`, and for
/// types that convert to it.
[[nodiscard]] inline std::string quoted(const std::string& words, std::size_t longest = 80) {
  return quoted(std::string_view{words}, longest);
}
/// Overload that is preferred to std::quoted if a program includes `<iomanip>`.
[[nodiscard]] inline std::string quoted(std::string& words, std::size_t longest = 80) {
  return quoted(std::string_view{words}, longest);
}
/// Overload that is preferred to std::quoted if a program includes `<iomanip>`.
[[nodiscard]] inline std::string quoted(const char* words, std::size_t longest = 80) {
  return quoted(std::string_view{words}, longest);
}

/// Joins strings, characters and numbers into one string: `concat("replica ", 3, " of ", 4)`.
template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  std::string joined;
  (detail::append_text(joined, parts), ...);
  return joined;
}
/// Former name of `concat`, until 0.3.
template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  return concat(parts...);
}

/// Joins the results of `say` for each element of a range, separated by `between`.
template <class Range, class Say>
[[nodiscard]] std::string joined(const Range& range, std::string_view between, const Say& say) {
  std::string all;
  std::string_view before;
  for (const auto& element : range) {
    all += concat(before, say(element));
    before = between;
  }
  return all;
}
/// Joins the elements of a range as concat() formats them: `joined(extents, "x")` is "2x2x1".
template <class Range>
[[nodiscard]] std::string joined(const Range& range, std::string_view between = ", ") {
  return joined(range, between, [](const auto& element) { return concat(element); });
}

/// Prints types with a `to_string` of this library: shapes, tensors, indexed slices, per-replica values.
template <class T>
  requires(std::is_class_v<T>&& detail::HasText<T>)
std::ostream& operator<<(std::ostream& out, const T& value) { return out << to_string(value); }

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/text.ipp>
#endif
