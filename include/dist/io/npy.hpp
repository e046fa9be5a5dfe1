/// Reads NumPy's NPY files (format versions 1.0 to 3.0): "\x93NUMPY", the version, the length of the header, a Python
/// dictionary with the element type, the order and the shape, then the elements.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/dtype.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/little_endian.hpp>

namespace dist::io {

/// The most elements that are read unless told otherwise.
inline constexpr std::size_t npy_default_max_elements = std::size_t{1} << 30;

/// A number type that NumPy has too: not BFloat16.
template <class T>
concept NpyElement = std::same_as<T, bool> || std::same_as<T, Float16> || std::same_as<T, float> ||
    std::same_as<T, double> ||(std::integral<T> && sizeof(T) <= 8);

namespace detail {

/// What an NPY header says.
struct NpyHeader {
  std::string descr;  // such as "<f4": byte order, kind, bytes per element
  bool fortran_order = false;
  Shape shape;
};

/// NumPy's letter for the kind of a number type.
template <class T>
inline constexpr char npy_kind = std::same_as<T, bool>       ? 'b'
                                 : std::signed_integral<T>   ? 'i'
                                 : std::unsigned_integral<T> ? 'u'
                                                             : 'f';

/// Reads the dictionary of an NPY header: three keys in any order, as Python prints them.
class NpyHeaderParser {
 public:
  NpyHeaderParser(std::string_view file, std::string_view text, std::size_t max_elements)
      : file_(file), rest_(text), length_(text.size()), max_elements_(max_elements) {}

  [[nodiscard]] NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      bool* const seen = key == "descr"           ? &has_descr
                         : key == "fortran_order" ? &has_order
                         : key == "shape"         ? &has_shape
                                                  : nullptr;
      if (seen == nullptr || *seen) refuse(dist::quoted(key), " is no key of an NPY header, or comes twice");
      *seen = true;
      if (seen == &has_descr)
        header.descr = element_type();
      else if (seen == &has_order)
        header.fortran_order = truth();
      else
        header.shape = shape();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty()) refuse("something follows the dictionary");
    if (!has_descr || !has_order || !has_shape) refuse("descr, fortran_order or shape is missing");
    return header;
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... why) const {
    throw FileError(file_, "is not an NPY file",
                    text("its header cannot be understood near byte ", length_ - rest_.size(), ": ", why...),
                    "Save the array again with numpy.save");
  }

  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  [[nodiscard]] bool accept(char wanted) {
    skip_space();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) refuse("'", wanted, "' was expected");
  }

  [[nodiscard]] std::string_view quoted() {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) refuse("a string was expected");
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) refuse("a string has no end");
    const std::string_view inside = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inside;
  }

  [[nodiscard]] std::string element_type() {
    skip_space();
    if (!rest_.empty() && rest_[0] == '[')
      throw FileError(file_, "holds records", "its elements have named fields",
                      "Save every field as an array of its own");
    return std::string(quoted());
  }

  [[nodiscard]] bool truth() {
    skip_space();
    for (const std::string_view word : {"True", "False"})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word == "True";
      }
    refuse("True or False was expected");
  }

  [[nodiscard]] Shape shape() {
    std::size_t extents[Shape::max_rank];
    std::size_t rank = 0;
    // A limit on the number of elements. An empty axis counts as one, so that no product of extents can overflow.
    std::size_t bound = 1;
    expect('(');
    while (!accept(')')) {
      if (rank == Shape::max_rank)
        throw FileError(file_, "has a rank that cannot be read", text("more than ", Shape::max_rank, " axes"),
                        "Save it with fewer axes (numpy.reshape)");
      extents[rank] = extent();
      const std::size_t factor = std::max<std::size_t>(extents[rank], 1);
      if (bound > max_elements_ / factor)
        throw FileError(file_, "announces too many elements",
                        text("the extents up to axis ", rank, " multiply to more than ", max_elements_),
                        "Raise max_elements if the file is sound");
      bound *= factor;
      ++rank;
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return Shape{std::span<const std::size_t>{extents, rank}};
  }

  [[nodiscard]] std::size_t extent() {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    skip_space();
    std::size_t number = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      const auto digit = static_cast<std::size_t>(rest_[digits] - '0');
      if (number > (most - digit) / 10) refuse("an extent is larger than any memory");
      number = 10 * number + digit;
    }
    if (digits == 0) refuse("an extent was expected");
    rest_.remove_prefix(digits);
    return number;
  }

  std::string_view file_;
  std::string_view rest_;
  std::size_t length_;
  std::size_t max_elements_;
};

/// Reads all that precedes the elements.
template <ByteSource Source>
[[nodiscard]] NpyHeader read_npy_header(Source& source, std::size_t max_elements) {
  constexpr std::string_view magic = "\x93NUMPY";
  constexpr std::size_t longest = std::size_t{1} << 16;
  constexpr const char* suggestion = "Give a file that numpy.save wrote";

  std::byte start[8];
  const std::size_t count = read_full(source, start);
  if (count < sizeof start || std::memcmp(start, magic.data(), magic.size()) != 0)
    throw FileError(source.name(), "is not an NPY file",
                    count < sizeof start ? text("it has ", count, " bytes, the header alone has more")
                                         : std::string("it does not begin with \\x93NUMPY"),
                    count >= 2 && start[0] == std::byte{'P'} && start[1] == std::byte{'K'}
                        ? "It is an archive: read it with Npz"
                        : suggestion);
  const auto version = std::to_integer<unsigned>(start[6]);
  if (version < 1 || version > 3)
    throw FileError(source.name(), "has an NPY version that cannot be read",
                    text("version ", version, ", expected 1 to 3"), suggestion);

  std::byte length_bytes[4] = {};
  const std::span<std::byte> length_field{length_bytes, version == 1 ? std::size_t{2} : std::size_t{4}};
  const bool has_length = read_full(source, length_field) == length_field.size();
  const std::size_t length = load_little_endian<std::uint32_t>(length_bytes);
  if (has_length && length > longest)
    throw FileError(source.name(), "has a header that is too long",
                    text(length, " bytes, at most ", longest, " are read"), suggestion);
  std::string header(length, '\0');
  if (!has_length || read_full(source, std::as_writable_bytes(std::span<char>{header.data(), header.size()})) < length)
    throw FileError(source.name(), "is truncated", "it ends inside its header", "Download or copy the file again");
  return NpyHeaderParser{source.name(), header, max_elements}.parse();
}

/// Throws FileError unless `descr` describes elements like `T`. Returns whether they are big-endian.
template <class T>
[[nodiscard]] bool check_npy_type(std::string_view file, std::string_view descr) {
  const std::string wanted{npy_kind<T>, static_cast<char>('0' + sizeof(T))};
  const char order = descr.empty() ? '\0' : descr[0];
  const bool has_order = order == '<' || order == '>' || order == '=' || (order == '|' && sizeof(T) == 1);
  if (!has_order || descr.substr(1) != wanted)
    throw FileError(file, "has elements of another type",
                    text("its elements are ", dist::quoted(descr), " in NumPy's notation, wanted ", dtype_name<T>,
                         " ('", wanted, "')"),
                    "Read it as the type that it holds, or save it as the wanted one with numpy's astype");
  return order == '>' || (order == '=' && std::endian::native == std::endian::big);
}

/// The row-major array of elements that lie column by column.
template <class T>
[[nodiscard]] Tensor<T> from_fortran_order(const Tensor<T>& columns) {
  const Shape& shape = columns.shape();
  Tensor<T> rows{shape};
  std::size_t strides[Shape::max_rank + 1] = {1};
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) strides[axis + 1] = strides[axis] * shape[axis];
  std::size_t index[Shape::max_rank] = {};
  std::size_t from = 0;
  for (std::size_t to = 0; to < rows.size(); ++to) {
    rows.data()[to] = columns.data()[from];
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis + 1];
      index[axis] = 0;
    }
  }
  return rows;
}

}  // namespace detail

/// Reads the whole of `source` as one NPY array of `T`, of any byte order, row-major or column-major.
///
/// Throws FileError when the data are not NPY, hold another type (which the message names), are truncated, are followed
/// by more bytes, or announce more than `max_elements` elements. Memory follows the data, as with `read_elements`.
template <class T, ByteSource Source>
[[nodiscard]] Tensor<T> read_npy(Source& source, std::size_t max_elements = npy_default_max_elements) {
  static_assert(dist::detail::holds<NpyElement<T>>,
                "NPY holds bool, Float16, float, double and the integers of up to 64 bits");
  const detail::NpyHeader header = detail::read_npy_header(source, max_elements);
  const bool big_endian = detail::check_npy_type<T>(source.name(), header.descr);
  using Stored = std::conditional_t<std::same_as<T, bool>, std::uint8_t, T>;  // any byte may claim to be a bool
  Tensor<Stored> elements = read_elements<Stored>(source, header.shape);
  if (big_endian != (std::endian::native == std::endian::big)) reverse_bytes(elements.elements());
  if (header.fortran_order && header.shape.rank() > 1) elements = detail::from_fortran_order(elements);
  if constexpr (std::same_as<T, Stored>) {
    return elements;
  } else {
    Tensor<T> truths{header.shape};
    for (std::size_t i = 0; i < elements.size(); ++i) truths[i] = elements[i] != 0;
    return truths;
  }
}

/// Reads the NPY file at `path`.
template <class T>
[[nodiscard]] Tensor<T> read_npy(const std::string& path, std::size_t max_elements = npy_default_max_elements) {
  FileSource source{path};
  return read_npy<T>(source, max_elements);
}

}  // namespace dist::io
