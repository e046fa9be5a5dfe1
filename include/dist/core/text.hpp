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

inline void append_text(std::string& out, std::string_view part) { out.append(part); }
inline void append_text(std::string& out, char part) { out.push_back(part); }

template <std::integral Number>
void append_text(std::string& out, Number part) {
  out.append(std::to_string(part));
}

/// With six significant digits and no zeros after them: 0.5, 600, 1e-09.
void append_text(std::string& out, double part);

/// In seconds, rounded to milliseconds: 0.25 s, 600 s.
void append_text(std::string& out, std::chrono::nanoseconds part);

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

/// `words` for a terminal: what that would act on is written out, as in "\x1b", and so is what is no UTF-8. After about
/// `longest` bytes it is cut, and says how long it was. `as_is` are control characters to keep.
[[nodiscard]] std::string printable(std::string_view words, std::size_t longest, std::string_view as_is = {});

/// What a message quotes of a file, the environment or a peer: "'words'", printable and not long.
[[nodiscard]] std::string quoted(std::string_view words, std::size_t longest = 80);
/// The same for a std::string, for which std::quoted would be called wherever a program includes <iomanip>, and for what a
/// std::string could be made of.
[[nodiscard]] inline std::string quoted(const std::string& words, std::size_t longest = 80) {
  return quoted(std::string_view{words}, longest);
}
[[nodiscard]] inline std::string quoted(std::string& words, std::size_t longest = 80) {
  return quoted(std::string_view{words}, longest);
}
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
/// The name until 0.3.
template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  return concat(parts...);
}

/// What `say` makes of each element of a range, with `between` from one to the next.
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
/// The elements of a range as concat() writes them: `joined(extents, "x")` is "2x2x1".
template <class Range>
[[nodiscard]] std::string joined(const Range& range, std::string_view between = ", ") {
  return joined(range, between, [](const auto& element) { return concat(element); });
}

/// Prints what has a `to_string` of ours: shapes, tensors, indexed slices, per-replica values.
template <class T>
  requires(std::is_class_v<T>&& detail::HasText<T>)
std::ostream& operator<<(std::ostream& out, const T& value) { return out << to_string(value); }

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/text.ipp>
#endif
