/// What the readers of array files share: the elements behind a header that announced their shape.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/convert_elements.hpp>

namespace dist::io {

/// Reverses the bytes of every element.
template <class T>
void reverse_bytes(std::span<T> elements) {
  if constexpr (sizeof(T) > 1)
    for (T& element : elements) {
      std::byte bytes[sizeof(T)];
      std::memcpy(bytes, &element, sizeof(T));
      std::reverse(bytes, bytes + sizeof(T));
      std::memcpy(&element, bytes, sizeof(T));
    }
}

namespace detail {

/// The bytes of elements as files have them, little-endian.
template <class T>
[[nodiscard]] std::span<const std::byte> written_bytes(std::span<const T> elements) noexcept {
  static_assert(std::endian::native == std::endian::little, "files of elements are written on little-endian machines");
  return std::as_bytes(elements);
}

/// The first axis up to which `extents` multiply to more than `most`, or their number. An empty axis counts as one, so that
/// no product of extents can overflow.
[[nodiscard]] constexpr std::size_t axis_beyond(std::span<const std::size_t> extents, std::size_t most) noexcept {
  std::size_t axis = 0;
  for (std::size_t bound = 1; axis < extents.size(); ++axis) {
    const std::size_t factor = std::max<std::size_t>(extents[axis], 1);
    if (bound > most / factor) break;
    bound *= factor;
  }
  return axis;
}

/// An element as messages have it.
template <class T>
[[nodiscard]] auto as_shown(T element) noexcept {
  if constexpr (std::integral<T>)
    return element;
  else
    return static_cast<double>(element);
}

/// Fills `to` with elements that lie in the source as `Stored` in the byte order `order`; the first of them is number
/// `first` there, for messages. Returns how many bytes were read: fewer than they take only at the end of the source.
template <class Stored, class T, ByteSource Source>
std::size_t fill_elements(Source& source, std::endian order, std::span<T> to, std::size_t first) {
  if constexpr (std::same_as<Stored, T> && !std::same_as<T, bool>) {
    const std::size_t bytes = read_full(source, std::as_writable_bytes(to));
    if (order != std::endian::native) reverse_bytes(to.first(bytes / sizeof(T)));
    return bytes;
  } else {
    using Kept =
        std::conditional_t<std::same_as<Stored, bool>, std::uint8_t, Stored>;  // any byte may claim to be a bool
    AlignedBuffer<Kept> buffer(std::min(to.size(), std::size_t{1} << 14));
    std::size_t bytes = 0;
    for (std::size_t filled = 0; filled < to.size();) {
      const std::span<Kept> part{buffer.data(), std::min(buffer.size(), to.size() - filled)};
      const std::size_t count = fill_elements<Kept>(source, order, part, first + filled);
      bytes += count;
      if (count < part.size_bytes()) break;
      if constexpr (std::same_as<Stored, bool>)
        for (Kept& truth : part) truth = truth != 0 ? 1 : 0;
      const std::size_t converted = convert_elements(std::span<const Kept>{part}, to.subspan(filled, part.size()));
      if (converted < part.size())
        throw FileError(source.name(), "has an element that the wanted type cannot hold",
                        concat("element ", first + filled + converted, " is ", as_shown(part[converted]), ", wanted ",
                               dtype_name<T>),
                        "Read it as the type that it holds");
      filled += part.size();
    }
    return bytes;
  }
}

}  // namespace detail

/// Reads the rest of `source` as the elements of an array of `shape`, which lie there as `Stored` in the byte order `order`.
/// Those of another type than `T` are converted as `convert_elements` says.
///
/// Throws FileError when there are fewer bytes than that, or more, or an element has no number of type `T`. Memory follows
/// the data, whatever a header announced: room for 65536 elements at first, then never more than about three times what was
/// really read.
template <class T, class Stored = T, ByteSource Source>
[[nodiscard]] Tensor<T> read_elements(Source& source, const Shape& shape, std::endian order = std::endian::native) {
  constexpr std::size_t first_capacity = std::size_t{1} << 16;
  constexpr const char* fetch_again = "Download or copy the file again";

  const std::size_t total = shape.elements();
  const auto sized = [&](std::size_t capacity) { return Tensor<T>(capacity == total ? shape : Shape{capacity}); };
  const auto announced = [&] {
    return concat("its header announces shape ", to_string(shape), ", ", total * sizeof(Stored),
                  " bytes of elements, but ");
  };
  Tensor<T> elements = sized(std::min(total, first_capacity));
  for (std::size_t filled = 0; filled < total;) {
    if (filled == elements.size()) {
      Tensor<T> larger = sized(std::min(total, 2 * filled));
      std::copy_n(elements.data(), filled, larger.data());
      elements = std::move(larger);
    }
    const std::span<T> room = elements.elements().subspan(filled);
    const std::size_t bytes = detail::fill_elements<Stored>(source, order, room, filled);
    if (bytes < room.size() * sizeof(Stored))
      throw FileError(source.name(), "is truncated", concat(announced(), filled * sizeof(Stored) + bytes, " follow"),
                      fetch_again);
    filled += room.size();
  }
  std::byte extra[1];
  if (source.read(extra) != 0)
    throw FileError(source.name(), "has bytes after its elements", concat(announced(), "more follow"), fetch_again);
  return elements;
}

}  // namespace dist::io
