/// What the readers of array files share: the elements behind a header that announced their shape.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/byte_source.hpp>

namespace dist::io {

/// Reads the rest of `source` as the elements of an array of `shape`, byte by byte as they are in memory.
///
/// Throws FileError when there are fewer bytes than that, or more. Memory follows the data, whatever a header
/// announced: room for 65536 elements at first, then never more than about three times what was really read.
template <class T, ByteSource Source>
[[nodiscard]] Tensor<T> read_elements(Source& source, const Shape& shape) {
  constexpr std::size_t first_capacity = std::size_t{1} << 16;
  constexpr const char* fetch_again = "Download or copy the file again";

  const std::size_t total = shape.elements();
  const auto sized = [&](std::size_t capacity) { return Tensor<T>(capacity == total ? shape : Shape{capacity}); };
  const auto announced = [&] {
    return text("its header announces shape ", to_string(shape), ", ", total * sizeof(T), " bytes of elements, but ");
  };
  Tensor<T> elements = sized(std::min(total, first_capacity));
  for (std::size_t filled = 0; filled < total;) {
    if (filled == elements.size()) {
      Tensor<T> larger = sized(std::min(total, 2 * filled));
      std::copy_n(elements.data(), filled, larger.data());
      elements = std::move(larger);
    }
    const std::span<T> room = elements.elements().subspan(filled);
    const std::size_t bytes = read_full(source, std::as_writable_bytes(room));
    if (bytes < room.size_bytes())
      throw FileError(source.name(), "is truncated", text(announced(), filled * sizeof(T) + bytes, " follow"),
                      fetch_again);
    filled += room.size();
  }
  std::byte extra[1];
  if (source.read(extra) != 0)
    throw FileError(source.name(), "has bytes after its elements", text(announced(), "more follow"), fetch_again);
  return elements;
}

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

}  // namespace dist::io
