#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/io/file.hpp>

namespace dist::io {

/// Bytes that are read once, in order. `read` fills the beginning of the buffer and returns the number of bytes: 0 only
/// at the end (or for an empty buffer), but possibly fewer than fit. `name` is for error messages.
template <class S>
concept ByteSource = requires(S source, const S& constant, std::span<std::byte> buffer) {
  { source.read(buffer) } -> std::same_as<std::size_t>;
  { constant.name() } -> std::same_as<const std::string&>;
};

/// Reads until `buffer` is full or the source ends. Returns the number of bytes read.
template <ByteSource Source>
std::size_t read_full(Source& source, std::span<std::byte> buffer) {
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    const std::size_t count = source.read(buffer.subspan(filled));
    if (count == 0) break;
    filled += count;
  }
  return filled;
}

namespace detail {

/// A type-erased reference to a ByteSource, so that readers are compiled once.
class AnySource {
 public:
  template <ByteSource Source>
    requires(!std::same_as<Source, AnySource>)
  AnySource(Source& source)
  noexcept
      : source_(&source),
        name_(&source.name()),
        read_([](void* kept, std::span<std::byte> buffer) { return static_cast<Source*>(kept)->read(buffer); }) {}

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) { return read_(source_, buffer); }
  [[nodiscard]] const std::string& name() const noexcept { return *name_; }

 private:
  void* source_;
  const std::string* name_;
  std::size_t (*read_)(void*, std::span<std::byte>);
};

/// A file opened for reading, and its name.
class OpenFile {
 public:
  /// Throws FileError if the file is missing or not readable.
  explicit OpenFile(std::string path) : name_(std::move(path)) {
    do descriptor_.reset(::open(name_.c_str(), O_RDONLY | O_CLOEXEC));
    while (!descriptor_ && errno == EINTR);
    if (!descriptor_) fail("cannot be opened", errno);
  }

  /// Returns the result of `read(descriptor)`, a system call, which is repeated after EINTR. Throws FileError if it
  /// fails.
  [[nodiscard]] std::size_t retry(auto&& read) const {
    for (;;) {
      const ssize_t count = read(descriptor_.get());
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) fail("cannot be read", errno);
    }
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[noreturn]] void fail(const char* problem, int error) const {
    const char* suggestion = "Check the disk and the file system that hold it";
    if (error == ENOENT || error == ENOTDIR) suggestion = "Check the path, and that the file is installed";
    if (error == EACCES || error == EPERM) suggestion = "Check the permissions of the file and of its folders";
    if (error == ESPIPE) suggestion = "Give a file, not a pipe";
    if (error == EISDIR) suggestion = "Give the path of a file in that folder";
    if (error == EMFILE || error == ENFILE) suggestion = "Close files, or raise the limit on open files (ulimit -n)";
    throw FileError(name_, problem, std::strerror(error), suggestion);
  }

  std::string name_;
  Descriptor descriptor_;
};

}  // namespace detail

/// A file as a ByteSource. Unbuffered: read many bytes at a time.
class FileSource {
 public:
  /// Throws FileError if the file is missing or not readable.
  explicit FileSource(std::string path) : file_(std::move(path)) {}

  /// Throws FileError if reading fails.
  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) {
    return file_.retry([&](int descriptor) { return ::read(descriptor, buffer.data(), buffer.size()); });
  }
  [[nodiscard]] const std::string& name() const noexcept { return file_.name(); }

 private:
  detail::OpenFile file_;
};

/// Bytes in memory as a ByteSource, which they must outlive.
class MemorySource {
 public:
  /// `name` is for error messages.
  explicit MemorySource(std::span<const std::byte> bytes, std::string name = "<memory>")
      : name_(std::move(name)), rest_(bytes) {}

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) {
    const std::size_t count = buffer.size() < rest_.size() ? buffer.size() : rest_.size();
    if (count > 0) std::memcpy(buffer.data(), rest_.data(), count);
    rest_ = rest_.subspan(count);
    return count;
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  std::span<const std::byte> rest_;
};

}  // namespace dist::io
