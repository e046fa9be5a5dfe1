#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/io/file.hpp>

namespace dist::io {

/// A new content of a file, of which others see all or nothing: the bytes go to a file of another name in the same folder,
/// which `commit` makes the file at `path`. A process that dies before leaves what was there.
///
///     dist::io::AtomicFile file{"weights.bin"};
///     file.append(bytes);
///     file.commit();
///
/// The other name is "<name>.partial-<process>-<number>"; `remove_abandoned` takes away those of processes that died. The
/// permissions are those of a new file (umask); a symbolic link at `path` is replaced, not followed.
///
/// What fails throws FileError, which names the file, says what became of its old content, and what to do. It removes the
/// new content at once, so that a full disk has its room back, and leaves the object as after `commit`. A limit on the size
/// of files (ulimit -f) is such a failure, too, and sends no signal to the program.
///
/// One thread at a time calls it. It is unbuffered: append many bytes at a time. A process that forks while it lives leaves
/// the object to one of the two, and ends the other by _exit.
class AtomicFile {
 public:
  /// Throws FileError also where there is no folder, or something other than a file stands at `path`.
  explicit AtomicFile(std::string path);
  AtomicFile(AtomicFile&& other) noexcept = default;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  /// Removes the new content unless it was committed.
  ~AtomicFile() { discard(); }

  void append(std::span<const std::byte> bytes);

  /// Makes what was appended the content of the file at `path`, also after a power failure: returns when the disk has it.
  void commit();

  /// The number of bytes appended.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  void create();
  void require_open() const;
  void discard() noexcept;
  [[noreturn]] void fail(std::string_view problem, int error);

  std::string path_;
  std::string name_;     // of the file in its folder
  std::string partial_;  // of the new content in that folder
  Descriptor folder_;
  Descriptor file_;  // none after the end
  std::uint64_t size_ = 0;
  std::uint64_t on_their_way_ = 0;  // bytes that the disk was told to take
  bool replaces_ = false;
};

/// Removes the new contents for the file at `path` that processes left behind which died before they committed them, and
/// returns how many there were. Those that are being written stay, whoever writes them. Throws FileError where the folder
/// cannot be read.
std::size_t remove_abandoned(const std::string& path);

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/atomic_file.ipp>
#endif
