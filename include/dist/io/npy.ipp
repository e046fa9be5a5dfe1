#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include <dist/core/error.hpp>
#include <dist/core/transpose.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/io/npy.hpp>

namespace dist::io::detail {

struct NpyHeader {
  std::string descr;  // such as "<f4": byte order, kind, bytes per element
  bool fortran_order = false;
  Shape shape;
};

/// Parses the dictionary of an NPY header: three keys in any order, as printed by Python.
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
      if (seen == nullptr || *seen) refuse(dist::quoted(key), " is not a key of an NPY header, or is repeated");
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
                    concat("its header cannot be parsed near byte ", length_ - rest_.size(), ": ", why...),
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
      throw FileError(file_, "holds records", "its elements have named fields", "Save every field as a separate array");
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
    expect('(');
    while (!accept(')')) {
      if (rank == Shape::max_rank)
        throw FileError(file_, "has a rank that cannot be read", concat("more than ", Shape::max_rank, " axes"),
                        "Save it with fewer axes (numpy.reshape)");
      extents[rank++] = extent();
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    const std::span<const std::size_t> all{extents, rank};
    if (const std::size_t axis = axis_beyond(all, max_elements_); axis < rank)
      throw FileError(file_, "announces too many elements",
                      concat("the extents up to axis ", axis, " multiply to more than ", max_elements_),
                      "Raise max_elements if the file is sound");
    return Shape{all};
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
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // suffix of long integers in Python 2
    return number;
  }

  std::string_view file_;
  std::string_view rest_;
  std::size_t length_;
  std::size_t max_elements_;
};

[[nodiscard]] inline NpyHeader read_npy_header(AnySource source, std::size_t max_elements) {
  constexpr std::size_t longest = std::size_t{1} << 16;
  constexpr const char* suggestion = "Give a file that numpy.save wrote";

  std::byte start[8];
  const std::size_t count = read_full(source, start);
  if (count < sizeof start || std::memcmp(start, npy_magic.data(), npy_magic.size()) != 0)
    throw FileError(source.name(), "is not an NPY file",
                    count < sizeof start ? concat("it has ", count, " bytes, the header alone has more")
                                         : std::string("it does not begin with \\x93NUMPY"),
                    count >= 2 && start[0] == std::byte{'P'} && start[1] == std::byte{'K'}
                        ? "It is an archive: read it with Npz"
                        : suggestion);
  const auto version = std::to_integer<unsigned>(start[6]);
  if (version < 1 || version > 3)
    throw FileError(source.name(), "has an NPY version that cannot be read",
                    concat("version ", version, ", expected 1 to 3"), suggestion);

  std::byte length_bytes[4] = {};
  const std::span<std::byte> length_field{length_bytes, version == 1 ? std::size_t{2} : std::size_t{4}};
  const bool has_length = read_full(source, length_field) == length_field.size();
  const std::size_t length = load_little_endian<std::uint32_t>(length_bytes);
  if (has_length && length > longest)
    throw FileError(source.name(), "has a header that is too long",
                    concat(length, " bytes, at most ", longest, " are read"), suggestion);
  std::string header(length, '\0');
  if (!has_length || read_full(source, std::as_writable_bytes(std::span<char>{header.data(), header.size()})) < length)
    throw FileError(source.name(), "is truncated", "it ends inside its header", "Download or copy the file again");
  return NpyHeaderParser{source.name(), header, max_elements}.parse();
}

/// The element type and byte order of an NPY file.
struct NpyType {
  std::optional<ElementType> type;  // empty if unknown
  std::endian order = std::endian::little;
};
[[nodiscard]] inline NpyType npy_type(std::string_view descr) {
  const char order = descr.empty() ? '\0' : descr[0];
  for (const ElementType type : all_element_types) {
    const bool has_order = order == '<' || order == '>' || order == '=' || (order == '|' && bytes_of(type) == 1);
    if (has_order && type != ElementType::bf16 && npy_code(type) == descr.substr(1))
      return {type, order == '>' ? std::endian::big : order == '=' ? std::endian::native : std::endian::little};
  }
  return {};
}

DIST_INLINE ReadArray read_npy(AnySource source, ElementType wanted, ConvertRead convert, std::size_t max_elements) {
  const NpyHeader header = read_npy_header(source, max_elements);
  const auto [type, order] = npy_type(header.descr);
  if (convert == nullptr && type != wanted)
    throw FileError(source.name(), "has elements of another type",
                    concat("its elements are ", quoted(header.descr), " in NumPy's notation, wanted ",
                           to_string(wanted), " ('", npy_code(wanted), "')"),
                    "Read it as its stored type, or save it as the wanted type with numpy's astype");
  if (!type)
    throw FileError(source.name(), "has elements of an unknown type",
                    concat("its elements are ", quoted(header.descr), " in NumPy's notation"),
                    "Save it as another type with numpy's astype");
  ReadArray array{header.shape, read_elements(source, *type, header.shape, order, wanted, convert)};
  const std::size_t rank = header.shape.rank();
  if (!header.fortran_order || rank < 2) return array;
  // A column-major array is the row-major array with its axes reversed.
  std::size_t extents[Shape::max_rank];
  std::size_t axes[Shape::max_rank];
  for (std::size_t axis = 0; axis < rank; ++axis) {
    axes[axis] = rank - 1 - axis;
    extents[axis] = header.shape[axes[axis]];
  }
  array.elements = dist::detail::transposed(array.elements.data(), bytes_of(wanted),
                                            Shape{std::span<const std::size_t>{extents, rank}}, {axes, rank});
  return array;
}

DIST_INLINE ReadArray read_npy(const std::string& path, ElementType wanted, ConvertRead convert,
                               std::size_t max_elements) {
  FileSource source{path};
  return read_npy(source, wanted, convert, max_elements);
}

}  // namespace dist::io::detail
