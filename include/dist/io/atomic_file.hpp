#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/io/file.hpp>

namespace dist::io {

/// Replaces the content of a file atomically: the bytes go to a temporary file in the same folder, and `commit` renames
/// it to `path`. A process that exits before that leaves the old content.
///
///     dist::io::AtomicFile file{"weights.bin"};
///     file.append(bytes);
///     file.commit();
///
/// The temporary file is called `<name>.partial-<process>-<number>`; `remove_abandoned` deletes it if the process has
/// exited. It has the permissions of a new file (umask); a symbolic link at `path` is replaced, not followed.
///
/// Failures throw FileError with the file, the state of its old content, and what to do. They delete the temporary file
/// at once, to free a full disk, and close this object like `commit`. The file size limit (ulimit -f) is such a
/// failure, without a signal.
///
/// Not thread-safe. Unbuffered: append many bytes at a time. After a fork only one of the two processes may use the
/// object; the other must end by _exit.
class AtomicFile {
 public:
  /// Throws FileError if the file cannot be created, or if `path` names something other than a file.
  explicit AtomicFile(std::string path);
  /// Takes over the file of `other`, which is closed afterwards.
  AtomicFile(AtomicFile&& other) noexcept = default;
  /// Deletes this object's temporary file unless it was committed, and takes over the file of `other`.
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  /// Deletes the temporary file unless it was committed.
  ~AtomicFile() { discard(); }

  /// Adds bytes to the temporary file.
  void append(std::span<const std::byte> bytes);

  /// Replaces the file at `path` by the appended bytes. Returns when they are on disk, safe from a power failure.
  void commit();

  /// The number of appended bytes.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// The path of the file to replace.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  void create();
  void require_open() const;
  void discard() noexcept;
  [[noreturn]] void fail(std::string_view problem, int error);

  std::string path_;
  std::string name_;     // of the file in its folder
  std::string partial_;  // of the temporary file
  Descriptor folder_;
  Descriptor file_;  // empty after `commit` or a failure
  std::uint64_t size_ = 0;
  std::uint64_t on_their_way_ = 0;  // number of bytes whose write-back has been started
  bool replaces_ = false;
};

/// Deletes the temporary files for `path` of processes that have exited, and returns their number. Files that any
/// process is writing stay. Throws FileError if the folder cannot be read.
std::size_t remove_abandoned(const std::string& path);

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/atomic_file.ipp>
#endif
