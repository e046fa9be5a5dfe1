/// Reads NumPy's NPZ files: ZIP archives of NPY files, stored (numpy.savez) or deflated (numpy.savez_compressed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/file.hpp>
#include <dist/io/gzip.hpp>
#include <dist/io/npy.hpp>
#include <dist/io/random_access.hpp>
#include <dist/io/zip.hpp>

namespace dist::io {

namespace detail {

/// The bytes of a source, whose number and checksum must be those that its archive says.
template <ByteSource Source>
class CheckedSource {
 public:
  CheckedSource(Source& source, const ZipEntry& entry) : source_(&source), entry_(&entry) {}

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) {
    const std::size_t count = source_->read(buffer);
    size_ += count;
    checksum_ = crc32_of(buffer.first(count), checksum_);
    const bool ended = count == 0 && !buffer.empty();
    if (size_ > entry_->size || (ended && size_ != entry_->size))
      corrupt(concat("it has ", size_ > entry_->size ? "more than " : "", size_ > entry_->size ? entry_->size : size_,
                     " bytes, the archive says ", entry_->size));
    if (ended && checksum_ != entry_->crc32)
      corrupt(concat("its CRC-32 is ", checksum_, ", the archive says ", entry_->crc32));
    return count;
  }
  [[nodiscard]] const std::string& name() const noexcept { return source_->name(); }

 private:
  [[noreturn]] void corrupt(std::string_view why) const {
    throw FileError(name(), "is corrupt", why, "Download or copy the file again");
  }

  Source* source_;
  const ZipEntry* entry_;
  std::uint64_t size_ = 0;
  std::uint32_t checksum_ = 0;
};

}  // namespace detail

/// The arrays of an NPZ file by name: `Npz{"mnist.npz"}.read<std::uint8_t>("x_train")`.
template <RandomAccess R = RandomAccessFile>
class Npz {
 public:
  /// Throws FileError when the file is missing or no ZIP archive.
  explicit Npz(std::string path) : archive_(R(std::move(path))) {}
  explicit Npz(R file) : archive_(std::move(file)) {}

  /// The names of the arrays, in the order of the file.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const ZipEntry& entry : archive_.entries())
      names.push_back(entry.name.ends_with(extension) ? entry.name.substr(0, entry.name.size() - extension.size())
                                                      : entry.name);
    return names;
  }

  /// Reads the array `name`. Throws FileError when there is none of that name (the message lists the first ten
  /// there are), when its data do not match its checksum, and as `read_npy` does; errors call it "<file>:<name>.npy".
  template <class T>
  [[nodiscard]] Tensor<T> read(std::string_view name, std::size_t max_elements = npy_default_max_elements) const {
    return with_source(name, [&](auto& source) { return read_npy<T>(source, max_elements); });
  }
  /// The same for elements of any type, which are converted as `read_npy_converted` does.
  template <class T>
  [[nodiscard]] Tensor<T> read_converted(std::string_view name,
                                         std::size_t max_elements = npy_default_max_elements) const {
    return with_source(name, [&](auto& source) { return read_npy_converted<T>(source, max_elements); });
  }

 private:
  static constexpr std::string_view extension = ".npy";
  static constexpr unsigned deflated = 8;

  /// What `read` makes of the bytes of the array `name`.
  [[nodiscard]] auto with_source(std::string_view name, auto&& read) const {
    const ZipEntry& entry = entry_of(name);
    const auto checked = [&](auto& source) {
      detail::CheckedSource bytes{source, entry};
      return read(bytes);
    };
    RangeSource<R> stored = archive_.open(entry);
    if (entry.method != deflated) return checked(stored);
    InflateSource<RangeSource<R>> inflated{std::move(stored)};
    return checked(inflated);
  }

  [[nodiscard]] const ZipEntry& entry_of(std::string_view name) const {
    const ZipEntry* entry = archive_.find(concat(name, extension));
    if (entry == nullptr) entry = archive_.find(name);
    if (entry == nullptr) {
      throw FileError(archive_.name(), concat("has no array ", quoted(name)), listed_names(names()),
                      "Use one of its names");
    }
    if (entry->encrypted || (entry->method != 0 && entry->method != deflated))
      throw FileError(archive_.name(), concat("holds ", quoted(name), " in a way that cannot be read"),
                      entry->encrypted ? std::string("it is encrypted") : concat("compression method ", entry->method),
                      "Save it with numpy.savez or numpy.savez_compressed");
    return *entry;
  }

  ZipArchive<R> archive_;
};
Npz(std::string)->Npz<RandomAccessFile>;
Npz(const char*)->Npz<RandomAccessFile>;
template <RandomAccess R>
Npz(R) -> Npz<R>;

}  // namespace dist::io
