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

/// The bytes at the start of `words` that are one character in UTF-8 other than a control character; 0 where they are none.
[[nodiscard]] constexpr std::size_t visible_character(std::string_view words) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(words[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return lead >= ' ' && lead != 0x7f ? 1 : 0;
  const std::size_t size = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (size == 0 || words.size() < size) return 0;
  // Control characters of two bytes, and characters in more bytes than they need.
  const unsigned least = lead == 0xc2 ? 0xa0 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  if (at(1) < least) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((at(i) & 0xc0U) != 0x80U) return 0;
  return size;
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

/// `words` for a terminal: what that would act on is written out, as in "\x1b", and so is what is no UTF-8. After about
/// `longest` bytes it is cut, and says how long it was. `as_is` are control characters to keep.
[[nodiscard]] inline std::string printable(std::string_view words, std::size_t longest, std::string_view as_is = {}) {
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

/// What a message quotes of a file, the environment or a peer: "'words'", printable and not long.
[[nodiscard]] inline std::string quoted(std::string_view words, std::size_t longest = 80) {
  std::string shown = "'";
  return shown.append(printable(words, longest)).append("'");
}

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
