#pragma once

#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/npy.hpp>
#include <dist/io/npz.hpp>

namespace dist::io {

/// Writes a ZIP archive (APPNOTE 6.3) of uncompressed files through an AtomicFile. Uses ZIP64 where necessary, for 4
/// GiB or 65535 files or more. All files have the time 1980-01-01, so the same content makes the same archive.
class ZipWriter {
 public:
  /// Throws FileError like AtomicFile.
  explicit ZipWriter(std::string path) : file_(std::move(path)) {}

  /// Adds a file whose content is the concatenation of `parts`. `name` is in UTF-8. Throws InvalidArgument if the name
  /// is empty, used twice, or too long; FileError like AtomicFile.
  void add(std::string_view name, std::initializer_list<std::span<const std::byte>> parts);

  /// Writes the directory and commits the file. Throws FileError like AtomicFile.
  void commit();

 private:
  AtomicFile file_;
  std::vector<ZipEntry> entries_;
  std::set<std::string> names_;
};

namespace detail {

/// The type, the shape and the elements of an array to write.
struct NpyElements {
  ElementType type;
  Shape shape;
  std::span<const std::byte> bytes;
};
template <class T, MemorySpace Where>
[[nodiscard]] NpyElements npy_elements(TensorView<T, Where> array) {
  using Element = std::remove_const_t<T>;
  dist::detail::require_host_access<Where>();
  return {npy_element_type<Element>, array.shape(),
          written_bytes(std::span<const Element>{array.data(), array.size()})};
}

void write_npy(const std::string& path, const NpyElements& array);

}  // namespace detail

/// Writes `array` to the NPY file at `path`, like numpy.save. An existing file is replaced atomically (see AtomicFile).
/// Throws FileError if the system call fails.
template <class T, MemorySpace Where>
void write_npy(const std::string& path, TensorView<T, Where> array) {
  detail::write_npy(path, detail::npy_elements(array));
}
/// Writes a tensor to the NPY file at `path`.
template <class T>
void write_npy(const std::string& path, const Tensor<T>& array) {
  write_npy(path, TensorView<const T>{array});
}

/// Writes an NPZ file of named arrays, uncompressed like numpy.savez. An existing file is replaced atomically (see
/// AtomicFile):
///
///     dist::io::NpzWriter file{"weights.npz"};
///     file.add("dense_1/kernel", kernel);
///     file.commit();
class NpzWriter {
 public:
  /// Throws FileError if the system call fails.
  explicit NpzWriter(std::string path) : archive_(std::move(path)) {}

  /// Writes `array` under `name` (UTF-8); keeps no reference. Throws InvalidArgument if the name is empty, used twice,
  /// or too long; FileError if the system call fails.
  template <class T, MemorySpace Where>
  void add(std::string_view name, TensorView<T, Where> array) {
    add(name, detail::npy_elements(array));
  }
  /// Writes a tensor, like a view.
  template <class T>
  void add(std::string_view name, const Tensor<T>& array) {
    add(name, TensorView<const T>{array});
  }
  /// Writes an array whose type is known at run time only.
  void add(std::string_view name, const detail::NpyElements& array);

  /// Commits the file. Throws FileError if the system call fails.
  void commit() { archive_.commit(); }

 private:
  ZipWriter archive_;
};

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/npz_writer.ipp>
#endif
