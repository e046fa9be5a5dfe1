/// Reads IDX files, the format of MNIST: two zero bytes, a type code, the rank, one big-endian 32-bit extent per axis,
/// then the elements, big-endian and row-major.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/elements.hpp>

namespace dist::data {

/// The default limit on the number of elements of a file.
inline constexpr std::size_t idx_default_max_elements = std::size_t{1} << 30;

/// The maximum number of elements to read, and the suggestion in the error message.
struct ElementLimit {
  /// A limit of `most` elements.
  constexpr ElementLimit(std::size_t most, const char* otherwise = "Raise max_elements if the file is sound")
      : elements(most), suggestion(otherwise) {}

  std::size_t elements;    ///< maximum number
  const char* suggestion;  ///< for the error message; must outlive the limit
};

namespace detail {

/// An IDX element type: its code in the file and its name in messages.
struct IdxType {
  unsigned code;
  std::string_view name;
};

template <class T>
inline constexpr IdxType idx_type{0, ""};
template <>
inline constexpr IdxType idx_type<std::uint8_t>{0x08, "uint8"};
template <>
inline constexpr IdxType idx_type<std::int8_t>{0x09, "int8"};
template <>
inline constexpr IdxType idx_type<std::int16_t>{0x0B, "int16"};
template <>
inline constexpr IdxType idx_type<std::int32_t>{0x0C, "int32"};
template <>
inline constexpr IdxType idx_type<float>{0x0D, "float32"};
template <>
inline constexpr IdxType idx_type<double>{0x0E, "float64"};

[[nodiscard]] inline std::string_view idx_type_name(unsigned code) {
  for (const IdxType& type : {idx_type<std::uint8_t>, idx_type<std::int8_t>, idx_type<std::int16_t>,
                              idx_type<std::int32_t>, idx_type<float>, idx_type<double>})
    if (type.code == code) return type.name;
  return "not an IDX type";
}

inline constexpr const char* idx_fetch_again = "Download or copy the file again";

/// Reads the extents from the header. Throws FileError if they multiply to more than `limit` elements.
[[nodiscard]] inline Shape read_idx_shape(io::detail::AnySource source, IdxType wanted, ElementLimit limit) {
  unsigned char magic[4];
  if (const std::size_t count =
          io::read_full(source, std::as_writable_bytes(std::span<unsigned char>{magic, sizeof magic}));
      count < sizeof magic)
    throw FileError(source.name(), "is not an IDX file",
                    concat("it has ", count, " bytes, the header alone has 4 or more"), idx_fetch_again);
  if (magic[0] != 0 || magic[1] != 0) {
    const bool gzip = magic[0] == 0x1F && magic[1] == 0x8B;
    throw FileError(
        source.name(), "is not an IDX file",
        concat("its first two bytes are ", unsigned{magic[0]}, " and ", unsigned{magic[1]}, ", expected 0 and 0"),
        gzip ? "It is compressed: read it with read_idx_gz" : "Give a file in IDX format");
  }
  if (magic[2] != wanted.code)
    throw FileError(source.name(), "has elements of another type",
                    concat("its type code is ", unsigned{magic[2]}, " (", idx_type_name(magic[2]), "), expected ",
                           wanted.code, " (", wanted.name, ")"),
                    "Read it as the type that it holds");
  const std::size_t rank = magic[3];
  if (rank == 0 || rank > Shape::max_rank)
    throw FileError(source.name(), "has a rank that cannot be read",
                    concat("rank ", rank, ", expected 1 to ", Shape::max_rank), "Store it with fewer axes");

  std::size_t extents[Shape::max_rank];
  for (std::size_t axis = 0; axis < rank; ++axis) {
    unsigned char bytes[4];
    if (io::read_full(source, std::as_writable_bytes(std::span<unsigned char>{bytes, sizeof bytes})) < sizeof bytes)
      throw FileError(source.name(), "is truncated", concat("the header ends before extent ", axis + 1, " of ", rank),
                      idx_fetch_again);
    extents[axis] = std::size_t{bytes[0]} << 24 | std::size_t{bytes[1]} << 16 | std::size_t{bytes[2]} << 8 | bytes[3];
  }
  const std::span<const std::size_t> all{extents, rank};
  if (const std::size_t axis = io::detail::axis_beyond(all, limit.elements); axis < rank)
    throw FileError(source.name(), "announces too many elements",
                    concat("the extents up to axis ", axis, " multiply to more than ", limit.elements),
                    limit.suggestion);
  return Shape{all};
}

}  // namespace detail

/// Reads all of `source` as one IDX array of `T`.
///
/// Throws FileError if the data are not IDX, have another element type, are truncated, have trailing bytes, or declare
/// more than `max_elements` elements. Memory use is at most about three times the bytes read.
template <class T, io::ByteSource Source>
[[nodiscard]] Tensor<T> read_idx(Source& source, ElementLimit max_elements) {
  static_assert(detail::idx_type<T>.code != 0,
                "IDX holds std::uint8_t, std::int8_t, std::int16_t, std::int32_t, float or double");
  const Shape shape = detail::read_idx_shape(source, detail::idx_type<T>, max_elements);
  return io::read_elements<T>(source, shape, std::endian::big);
}

}  // namespace dist::data
