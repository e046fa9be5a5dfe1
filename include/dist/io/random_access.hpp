#pragma once

#include <unistd.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/io/byte_source.hpp>

namespace dist::io {

/// Bytes that can be read at any offset. `read_at` fills the beginning of the buffer and returns the number of bytes:
/// fewer than fit only at the end. Reading is const.
template <class R>
concept RandomAccess = requires(const R& bytes, std::uint64_t offset, std::span<std::byte> buffer) {
  { bytes.read_at(offset, buffer) } -> std::same_as<std::size_t>;
  { bytes.size() } -> std::same_as<std::uint64_t>;
  { bytes.name() } -> std::same_as<const std::string&>;
};

/// A file that does not change while it is open.
class RandomAccessFile {
 public:
  /// Throws FileError if the file is missing or not readable.
  explicit RandomAccessFile(std::string path)
      : file_(std::move(path)),
        size_(file_.retry([](int descriptor) { return static_cast<ssize_t>(::lseek(descriptor, 0, SEEK_END)); })) {}

  /// Throws FileError if reading fails.
  [[nodiscard]] std::size_t read_at(std::uint64_t offset, std::span<std::byte> buffer) const {
    std::size_t filled = 0;
    while (filled < buffer.size() && offset + filled < size_) {
      const std::size_t count = file_.retry([&](int descriptor) {
        return ::pread(descriptor, buffer.data() + filled, buffer.size() - filled, static_cast<off_t>(offset + filled));
      });
      if (count == 0) break;
      filled += count;
    }
    return filled;
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::string& name() const noexcept { return file_.name(); }

 private:
  detail::OpenFile file_;
  std::uint64_t size_;
};

/// Bytes in memory, which must outlive this object.
class RandomAccessMemory {
 public:
  /// `name` is for error messages.
  explicit RandomAccessMemory(std::span<const std::byte> bytes, std::string name = "<memory>")
      : name_(std::move(name)), bytes_(bytes) {}

  [[nodiscard]] std::size_t read_at(std::uint64_t offset, std::span<std::byte> buffer) const {
    if (offset >= bytes_.size()) return 0;
    const std::span<const std::byte> rest = bytes_.subspan(static_cast<std::size_t>(offset));
    const std::size_t count = buffer.size() < rest.size() ? buffer.size() : rest.size();
    if (count > 0) std::memcpy(buffer.data(), rest.data(), count);
    return count;
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

/// Returns the text of a file, or its first `max_bytes` if it is longer. Throws FileError if reading fails.
[[nodiscard]] inline std::string read_text(const RandomAccess auto& file, std::size_t max_bytes) {
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), max_bytes)), '\0');
  text.resize(file.read_at(0, std::as_writable_bytes(std::span<char>{text.data(), text.size()})));
  return text;
}

namespace detail {

/// A type-erased reference to RandomAccess bytes, so that readers are compiled once.
class AnyRandomAccess {
 public:
  template <RandomAccess R>
    requires(!std::same_as<R, AnyRandomAccess>)
  AnyRandomAccess(const R& bytes)
  noexcept
      : bytes_(&bytes),
        size_(bytes.size()),
        name_(&bytes.name()),
        read_at_([](const void* kept, std::uint64_t offset, std::span<std::byte> buffer) {
          return static_cast<const R*>(kept)->read_at(offset, buffer);
        }) {}

  [[nodiscard]] std::size_t read_at(std::uint64_t offset, std::span<std::byte> buffer) const {
    return read_at_(bytes_, offset, buffer);
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::string& name() const noexcept { return *name_; }

 private:
  const void* bytes_;
  std::uint64_t size_;
  const std::string* name_;
  std::size_t (*read_at_)(const void*, std::uint64_t, std::span<std::byte>);
};

}  // namespace detail

/// A ByteSource of `size` bytes, starting at `offset`, of bytes that outlive it, under another name.
template <RandomAccess R>
class RangeSource {
 public:
  /// `name` is for error messages.
  RangeSource(const R& bytes, std::uint64_t offset, std::uint64_t size, std::string name)
      : bytes_(&bytes), offset_(offset), left_(size), name_(std::move(name)) {}

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) {
    if (buffer.size() > left_) buffer = buffer.first(static_cast<std::size_t>(left_));
    const std::size_t count = bytes_->read_at(offset_, buffer);
    offset_ += count;
    left_ -= count;
    return count;
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  const R* bytes_;
  std::uint64_t offset_;
  std::uint64_t left_;
  std::string name_;
};

}  // namespace dist::io
