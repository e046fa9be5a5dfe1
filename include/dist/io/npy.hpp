/// Reader for NumPy's NPY files (format versions 1.0 to 3.0): "\x93NUMPY", the version, the length of the header, a
/// Python dictionary with the element type, the order and the shape, then the elements.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>

namespace dist::io {

/// The default limit on the number of elements.
inline constexpr std::size_t npy_default_max_elements = std::size_t{1} << 30;

/// A number type of NumPy: all types of this library except BFloat16.
template <class T>
concept NpyElement = std::same_as<T, bool> || std::same_as<T, Float16> || std::same_as<T, float> ||
    std::same_as<T, double> ||(std::integral<T> && sizeof(T) <= 8);

namespace detail {

inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// Returns NumPy's code for a number type, its kind and size: "f4". NumPy has no BFloat16.
[[nodiscard]] inline std::string npy_code(ElementType type) { return concat(to_string(type)[0], bytes_of(type)); }

/// An array whose element type its reader has chosen.
struct ReadArray {
  Shape shape;
  AlignedBuffer<std::byte> elements;
};
/// Reads an array as elements of type `wanted`. Throws FileError if they have another type and `convert` is nullptr.
[[nodiscard]] ReadArray read_npy(AnySource source, ElementType wanted, ConvertRead convert, std::size_t max_elements);
[[nodiscard]] ReadArray read_npy(const std::string& path, ElementType wanted, ConvertRead convert,
                                 std::size_t max_elements);
template <class T>
[[nodiscard]] Tensor<T> to_tensor(ReadArray array) {
  return {array.shape, std::move(array.elements)};
}

/// The element type of `T`, which must be an NpyElement.
template <class T>
inline constexpr ElementType npy_element_type = [] {
  static_assert(dist::detail::satisfied<NpyElement<T>>,
                "NPY supports bool, Float16, float, double and the integers of up to 64 bits");
  return element_type<T>;
}();

}  // namespace detail

/// Reads all of `source` as one NPY array of `T`, of any byte order, row-major or column-major.
///
/// Throws FileError if the data are not NPY, have another type, are truncated, have trailing bytes, or declare more
/// than `max_elements` elements. Memory use is bounded like in `read_elements`.
template <class T, ByteSource Source>
[[nodiscard]] Tensor<T> read_npy(Source& source, std::size_t max_elements = npy_default_max_elements) {
  return detail::to_tensor<T>(detail::read_npy(source, detail::npy_element_type<T>, nullptr, max_elements));
}

/// Reads all of `source` as one NPY array of any type, and converts the elements to `T` (also BFloat16) like
/// `convert_elements`. Throws FileError like `read_npy`, if an element is not representable, or for complex numbers,
/// strings and dates.
template <class T, ByteSource Source>
[[nodiscard]] Tensor<T> read_npy_converted(Source& source, std::size_t max_elements = npy_default_max_elements) {
  return detail::to_tensor<T>(detail::read_npy(source, element_type<T>, detail::convert_read_elements, max_elements));
}

/// Reads the NPY file at `path`. Throws FileError like the overload for sources.
template <class T>
[[nodiscard]] Tensor<T> read_npy(const std::string& path, std::size_t max_elements = npy_default_max_elements) {
  return detail::to_tensor<T>(detail::read_npy(path, detail::npy_element_type<T>, nullptr, max_elements));
}
/// Reads the NPY file at `path`, and converts its elements to `T`. Throws FileError like the overload for sources.
template <class T>
[[nodiscard]] Tensor<T> read_npy_converted(const std::string& path,
                                           std::size_t max_elements = npy_default_max_elements) {
  return detail::to_tensor<T>(detail::read_npy(path, element_type<T>, detail::convert_read_elements, max_elements));
}

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/npy.ipp>
#endif
