/// Reader for NumPy's NPZ files: ZIP archives of NPY files, stored (numpy.savez) or deflated (numpy.savez_compressed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/element_type.hpp>
#include <dist/io/elements.hpp>
#include <dist/io/npy.hpp>
#include <dist/io/random_access.hpp>

namespace dist::io {

/// One file of an archive, as described by the archive's directory.
struct ZipEntry {
  std::string name;                   ///< path in the archive
  unsigned method = 0;                ///< 0 stored, 8 deflated
  bool encrypted = false;             ///< true if the file has a password, which this library does not support
  std::uint32_t crc32 = 0;            ///< checksum of the file
  std::uint64_t compressed_size = 0;  ///< bytes in the archive
  std::uint64_t size = 0;             ///< bytes after decompression
  std::uint64_t header_offset = 0;    ///< offset of the file's local header in the archive
};

namespace detail {

[[nodiscard]] std::vector<ZipEntry> read_zip_directory(AnyRandomAccess file);
[[nodiscard]] const ZipEntry* find_zip_entry(const std::vector<ZipEntry>& entries, std::string_view name);
/// Returns the offset of an entry's bytes. Throws FileError if it is not where the directory says.
[[nodiscard]] std::uint64_t start_of(AnyRandomAccess file, const ZipEntry& entry);

}  // namespace detail

/// A single-part ZIP archive (APPNOTE 6.3, with ZIP64). Reads only the directory.
template <RandomAccess R>
class ZipArchive {
 public:
  /// Throws FileError if the file is not a ZIP archive, truncated, or has a corrupt directory.
  explicit ZipArchive(R file) : file_(std::move(file)), entries_(detail::read_zip_directory(file_)) {}

  /// The files, in the order of the directory.
  [[nodiscard]] const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  /// Returns the entry with this name (the last one of several), or nullptr.
  [[nodiscard]] const ZipEntry* find(std::string_view name) const { return detail::find_zip_entry(entries_, name); }

  /// Returns the bytes of an entry as stored. The archive must outlive the source, and not move. Throws FileError if
  /// the entry is not where the directory says.
  [[nodiscard]] RangeSource<R> open(const ZipEntry& entry) const {
    return {file_, detail::start_of(file_, entry), entry.compressed_size, concat(name(), ":", entry.name)};
  }

  /// All bytes of the archive.
  [[nodiscard]] const R& bytes() const noexcept { return file_; }
  [[nodiscard]] const std::string& name() const noexcept { return file_.name(); }

 private:
  R file_;
  std::vector<ZipEntry> entries_;
};

namespace detail {

[[nodiscard]] std::vector<std::string> npz_names(const std::vector<ZipEntry>& entries);

/// Reads the array `name` like `read_npy`, and verifies its checksum.
[[nodiscard]] ReadArray read_npz(AnyRandomAccess file, const std::vector<ZipEntry>& entries, std::string_view name,
                                 ElementType wanted, ConvertRead convert, std::size_t max_elements);

}  // namespace detail

/// The arrays of an NPZ file by name: `Npz{"mnist.npz"}.read<std::uint8_t>("x_train")`.
template <RandomAccess R = RandomAccessFile>
class Npz {
 public:
  /// Throws FileError if the file is missing or not a ZIP archive.
  explicit Npz(std::string path) : archive_(R(std::move(path))) {}
  /// The arrays of an archive that was opened before. Throws FileError if it is not a ZIP archive.
  explicit Npz(R file) : archive_(std::move(file)) {}

  /// The names of the arrays, in the order of the file.
  [[nodiscard]] std::vector<std::string> names() const { return detail::npz_names(archive_.entries()); }

  /// Reads the array `name`. Throws FileError if it does not exist (the message lists ten names), if its checksum does
  /// not match, and like `read_npy`. Errors name it `<file>:<name>.npy`.
  template <class T>
  [[nodiscard]] Tensor<T> read(std::string_view name, std::size_t max_elements = npy_default_max_elements) const {
    return detail::to_tensor<T>(read(name, detail::npy_element_type<T>, nullptr, max_elements));
  }
  /// Reads the array `name` and converts its elements to `T`, like `read_npy_converted`.
  template <class T>
  [[nodiscard]] Tensor<T> read_converted(std::string_view name,
                                         std::size_t max_elements = npy_default_max_elements) const {
    return detail::to_tensor<T>(read(name, element_type<T>, detail::convert_read_elements, max_elements));
  }

  /// Reads the array `name` and converts its elements to a run-time type.
  [[nodiscard]] detail::AnyTensor read_converted(std::string_view name, ElementType type) const {
    detail::ReadArray array = read(name, type, detail::convert_read_elements, npy_default_max_elements);
    return {type, array.shape, std::move(array.elements)};
  }

 private:
  [[nodiscard]] detail::ReadArray read(std::string_view name, ElementType wanted, detail::ConvertRead convert,
                                       std::size_t max_elements) const {
    return detail::read_npz(archive_.bytes(), archive_.entries(), name, wanted, convert, max_elements);
  }

  ZipArchive<R> archive_;
};
/// Deduces a file.
Npz(std::string)->Npz<RandomAccessFile>;
/// Deduces a file.
Npz(const char*)->Npz<RandomAccessFile>;
/// Deduces the type of the bytes.
template <RandomAccess R>
Npz(R) -> Npz<R>;

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/npz.ipp>
#endif
