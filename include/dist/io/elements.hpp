/// Reading of array elements after a header, and conversion between element types.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/transpose.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/element_type.hpp>

namespace dist::io {

namespace detail {

/// Implements io::convert_elements for run-time types. In a bool, any non-zero byte is true.
[[nodiscard]] std::size_t convert_elements(ElementType from_type, const std::byte* from, ElementType to_type,
                                           std::byte* to, std::size_t count);

/// Converts elements that were read from `file`; `first` is the index of the first one. Throws FileError if an element
/// is not representable.
void convert_read_elements(const std::string& file, std::size_t first, ElementType from_type, const std::byte* from,
                           ElementType to_type, std::byte* to, std::size_t count);
/// `convert_read_elements`, or nullptr if no conversion is needed: programs that never convert do not compile the
/// conversions.
using ConvertRead = decltype(&convert_read_elements);

}  // namespace detail

/// Converts the elements of `from` to `to`, of the same size. Floating-point results are rounded to nearest; all others
/// must equal their source, with true as 1. Returns the index of the first element that is not representable, such as
/// 300 as an 8-bit integer, 0.5 as an integer, 2 as a bool, or 100'000 as a Float16; otherwise the number of elements.
/// Infinities and NaN are representable in every floating-point type.
template <class From, class To>
[[nodiscard]] std::size_t convert_elements(std::span<const From> from, std::span<To> to) {
  return detail::convert_elements(element_type<From>, std::as_bytes(from).data(), element_type<To>,
                                  std::as_writable_bytes(to).data(), from.size());
}

namespace detail {

/// Reverses the bytes of each element of `size` bytes.
void reverse_bytes(std::span<std::byte> elements, std::size_t size);

}  // namespace detail

/// Reverses the bytes of each element.
template <class T>
void reverse_bytes(std::span<T> elements) {
  detail::reverse_bytes(std::as_writable_bytes(elements), sizeof(T));
}

namespace detail {

/// Returns the little-endian bytes of elements, for files.
template <class T>
[[nodiscard]] std::span<const std::byte> written_bytes(std::span<const T> elements) noexcept {
  static_assert(std::endian::native == std::endian::little,
                "files of elements can be written only on little-endian machines");
  return std::as_bytes(elements);
}

/// Returns the first axis up to which `extents` multiply to more than `most`, or the number of axes. Empty axes count
/// as 1, so that no product can overflow.
[[nodiscard]] constexpr std::size_t axis_beyond(std::span<const std::size_t> extents, std::size_t most) noexcept {
  std::size_t axis = 0;
  for (std::size_t bound = 1; axis < extents.size(); ++axis) {
    const std::size_t factor = std::max<std::size_t>(extents[axis], 1);
    if (bound > most / factor) break;
    bound *= factor;
  }
  return axis;
}

/// Fills `to` with elements of type `wanted`, from elements of type `stored` in byte order `order`; `first` is the
/// index of the first one, for messages. Returns the number of bytes read: fewer than required only at the end of the
/// source.
std::size_t fill_elements(AnySource source, ElementType stored, std::endian order, ElementType wanted,
                          ConvertRead convert, std::span<std::byte> to, std::size_t first);

/// Implements io::read_elements. The results have type `wanted`.
[[nodiscard]] AlignedBuffer<std::byte> read_elements(AnySource source, ElementType stored, const Shape& shape,
                                                     std::endian order, ElementType wanted, ConvertRead convert);

/// A tensor with a run-time element type. Copies share the elements, which are immutable.
struct AnyTensor {
  ElementType type = ElementType::f32;
  Shape shape;
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;

  AnyTensor() = default;
  AnyTensor(ElementType element, const Shape& extents, AlignedBuffer<std::byte> elements);
  template <class T>
  [[nodiscard]] static AnyTensor of(Tensor<T> values) {
    const Shape shape = values.shape();
    return {element_type<T>, shape, std::move(values).take_bytes()};
  }
  /// Returns a tensor whose elements `fill` writes.
  template <class Fill>
  [[nodiscard]] static AnyTensor filled_by(ElementType type, const Shape& shape, const Fill& fill) {
    AlignedBuffer<std::byte> elements(shape.elements() * bytes_of(type));
    fill(std::span<std::byte>{elements.data(), elements.size()});
    return {type, shape, std::move(elements)};
  }

  /// Returns a view of the elements, which must be of type `T`.
  template <class T>
  [[nodiscard]] TensorView<const T> view() const {
    return {reinterpret_cast<const T*>(bytes.data()), shape};
  }
  /// Returns the tensor with its axes permuted, like `dist::transpose`.
  [[nodiscard]] AnyTensor transposed(std::span<const std::size_t> axes) const {
    return {type, dist::detail::transposed(shape, axes),
            dist::detail::transposed(bytes.data(), bytes_of(type), shape, axes)};
  }
};

}  // namespace detail

/// Reads the rest of `source` as an array of `shape`, stored as elements of type `Stored` in byte order `order`, and
/// converts them to `T` like `convert_elements`.
///
/// Throws FileError if there are fewer or more bytes, or if an element is not representable as `T`. Memory use is
/// bounded by the data, not by the shape: room for 65536 elements at first, then at most about three times the bytes
/// read.
template <class T, class Stored = T, ByteSource Source>
[[nodiscard]] Tensor<T> read_elements(Source& source, const Shape& shape, std::endian order = std::endian::native) {
  detail::ConvertRead convert = nullptr;
  if constexpr (!std::same_as<T, Stored>) convert = detail::convert_read_elements;
  return {shape, detail::read_elements(source, element_type<Stored>, shape, order, element_type<T>, convert)};
}

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/elements.ipp>
#endif
