#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/npy.hpp>
#include <dist/io/zip_writer.hpp>

namespace dist::io {

namespace detail {

/// All that precedes the elements in an NPY file: version 1.0, row by row, padded with spaces so that they begin at a multiple
/// of 64 bytes.
[[nodiscard]] inline std::string npy_start(ElementType type, const Shape& shape) {
  constexpr std::size_t alignment = 64;
  std::string extents;
  for (const std::size_t extent : shape.extents()) extents += concat(extents.empty() ? "" : " ", extent, ",");
  if (shape.rank() > 1) extents.pop_back();
  std::string header = concat("{'descr': '", bytes_of(type) == 1 ? '|' : '<', npy_code(type),
                              "', 'fortran_order': False, 'shape': (", extents, "), }");
  constexpr std::size_t before = 10;  // the magic, the version and the length
  const std::size_t unpadded = before + header.size() + 1;
  header.append((alignment - unpadded % alignment) % alignment, ' ');
  header += '\n';
  std::string start = concat(npy_magic, '\x01', '\0');
  start += static_cast<char>(header.size() & 0xFFU);
  start += static_cast<char>(header.size() >> 8);
  return start + header;
}

/// The two parts of an NPY file.
template <class T>
struct NpyParts {
  template <MemorySpace Where>
  explicit NpyParts(TensorView<T, Where> array)
      : start(npy_start(element_type<std::remove_const_t<T>>, array.shape())),
        elements(written_bytes(std::span<const std::remove_const_t<T>>{array.data(), array.size()})) {
    dist::detail::require_host_access<Where>();
    static_assert(dist::detail::satisfied<NpyElement<std::remove_const_t<T>>>,
                  "NPY holds bool, Float16, float, double and the integers of up to 64 bits");
  }
  [[nodiscard]] std::span<const std::byte> start_bytes() const {
    return std::as_bytes(std::span<const char>{start.data(), start.size()});
  }

  std::string start;
  std::span<const std::byte> elements;
};

}  // namespace detail

/// Writes `array` as the NPY file at `path`, as numpy.save does; what was there is replaced as AtomicFile does. Throws
/// FileError when the system refuses.
template <class T, MemorySpace Where>
void write_npy(const std::string& path, TensorView<T, Where> array) {
  const detail::NpyParts<T> parts{array};
  AtomicFile file{path};
  file.append(parts.start_bytes());
  file.append(parts.elements);
  file.commit();
}
template <class T>
void write_npy(const std::string& path, const Tensor<T>& array) {
  write_npy(path, TensorView<const T>{array});
}

/// An NPZ file of arrays by name, stored as numpy.savez does, and replaced as AtomicFile does:
///
///     dist::io::NpzWriter file{"weights.npz"};
///     file.add("dense_1/kernel", kernel);
///     file.commit();
class NpzWriter {
 public:
  /// Throws FileError when the system refuses.
  explicit NpzWriter(std::string path) : archive_(std::move(path)) {}

  /// Adds `array` under `name`, which is in UTF-8. Nothing of it is kept. Throws InvalidArgument for a name that is empty,
  /// comes twice, or is too long; FileError when the system refuses.
  template <class T, MemorySpace Where>
  void add(std::string_view name, TensorView<T, Where> array) {
    const detail::NpyParts<T> parts{array};
    archive_.add(name.empty() ? std::string() : concat(name, ".npy"), {parts.start_bytes(), parts.elements});
  }
  template <class T>
  void add(std::string_view name, const Tensor<T>& array) {
    add(name, TensorView<const T>{array});
  }

  /// Makes all of it the content of the file. Throws FileError when the system refuses.
  void commit() { archive_.commit(); }

 private:
  ZipWriter archive_;
};

}  // namespace dist::io
