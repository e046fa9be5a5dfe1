#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <dist/core/tensor.hpp>
#include <dist/io/write_npy.hpp>
#include <dist/io/zip_writer.hpp>

namespace dist::io {

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
  template <class T>
  void add(std::string_view name, TensorView<T> array) {
    const detail::NpyParts<T> parts{array};
    archive_.add(name.empty() ? std::string() : text(name, ".npy"), {parts.start_bytes(), parts.elements});
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
