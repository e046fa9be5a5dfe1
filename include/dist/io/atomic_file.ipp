#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/atomic_file.hpp>
#include <dist/io/writable_file.hpp>

namespace dist::io {

namespace detail {

inline constexpr std::string_view partial_mark = ".partial-";

/// Splits `path` into the folder and the name.
[[nodiscard]] inline std::pair<std::string, std::string> folder_and_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

/// Opens a folder. Returns an empty descriptor and sets errno on failure.
[[nodiscard]] inline Descriptor open_folder(const std::string& path) {
  Descriptor folder;
  do folder.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (!folder && errno == EINTR);
  return folder;
}

}  // namespace detail

DIST_INLINE AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  auto [folder, name] = detail::folder_and_name(path_);
  name_ = std::move(name);
  if (name_.empty())
    throw FileError(path_, "cannot be written", "its path does not end in a file name", "Use the path of a file");
  folder_ = detail::open_folder(folder);
  if (!folder_) fail("cannot be written", errno);
  struct stat there;
  replaces_ = fstatat(folder_.get(), name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
  if (replaces_ && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
    throw FileError(path_, "cannot be written", "something other than a file has that name", "Give another path");
  create();
}

DIST_INLINE AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  name_ = std::move(other.name_);
  partial_ = std::move(other.partial_);
  folder_ = std::move(other.folder_);
  file_ = std::move(other.file_);
  size_ = other.size_;
  on_their_way_ = other.on_their_way_;
  replaces_ = other.replaces_;
  return *this;
}

DIST_INLINE void AtomicFile::create() {
  static std::atomic<unsigned> number{0};
  // The name may belong to a process that has exited or that runs on another machine. Until the lock is held,
  // `remove_abandoned` may delete this file.
  for (;;) {
    partial_ = concat(name_, detail::partial_mark, getpid(), "-", number.fetch_add(1, std::memory_order_relaxed));
    file_.reset(openat(folder_.get(), partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file_ && (errno == EEXIST || errno == EINTR)) continue;
    if (!file_) fail("cannot be written", errno);
    // Without support for locks, no file is ever regarded as abandoned.
    while (flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat made;
    if (fstat(file_.get(), &made) == 0 && made.st_nlink > 0) return;
  }
}

DIST_INLINE void AtomicFile::append(std::span<const std::byte> bytes) {
  constexpr std::size_t disk_step = std::size_t{8} << 20;
  require_open();
  detail::write_all(
      bytes,
      [&](std::span<const std::byte> rest) {
        const ssize_t count = ::write(file_.get(), rest.data(), std::min(rest.size(), disk_step));
        if (count <= 0) return count;
        size_ += static_cast<std::uint64_t>(count);
        if (size_ - on_their_way_ < disk_step) return count;
        // Start the write-back now, so that the disk is not idle until `commit`. Errors are reported there.
        sync_file_range(file_.get(), static_cast<off_t>(on_their_way_), static_cast<off_t>(size_ - on_their_way_),
                        SYNC_FILE_RANGE_WRITE);
        on_their_way_ = size_;
        return count;
      },
      [&](int error) { fail("cannot be written", error); });
}

DIST_INLINE void AtomicFile::commit() {
  require_open();
  while (fsync(file_.get()) != 0)
    if (errno != EINTR) fail("cannot be written", errno);
  if (renameat(folder_.get(), partial_.c_str(), folder_.get(), name_.c_str()) != 0)
    fail("cannot be replaced by its new content", errno);
  file_.reset();
  // Some file systems cannot synchronise folders, and need not.
  while (fsync(folder_.get()) != 0)
    if (errno != EINTR) {
      if (errno == EINVAL || errno == ENOTSUP) break;
      throw FileError(
          path_, "may be lost in a power failure",
          concat("its new content is written, but the folder could not be synchronised: ", std::strerror(errno)),
          "Check the disk that holds it, and write the file again");
    }
}

DIST_INLINE void AtomicFile::require_open() const {
  if (!file_)
    throw FileError(path_, "is not open for writing", "its new content was committed, or a write failed",
                    "Create a new AtomicFile for each content");
}

DIST_INLINE void AtomicFile::discard() noexcept {
  if (!file_) return;
  unlinkat(folder_.get(), partial_.c_str(), 0);
  file_.reset();
}

DIST_INLINE void AtomicFile::fail(std::string_view problem, int error) {
  discard();
  throw FileError(path_, problem,
                  concat(std::strerror(error), size_ > 0 ? concat(", after ", size_, " bytes") : "",
                         replaces_ ? "; its old content is still there" : "; no part of it remains"),
                  detail::writing_suggestion(error));
}

DIST_INLINE std::size_t remove_abandoned(const std::string& path) {
  const auto [folder, name] = detail::folder_and_name(path);
  const auto refuse = [&searched = folder](int error) {
    throw FileError(searched, "cannot be searched for unfinished files", std::strerror(error),
                    detail::writing_suggestion(error));
  };
  Descriptor opened = detail::open_folder(folder);
  if (!opened) refuse(errno);
  DIR* const entries = fdopendir(opened.get());
  if (entries == nullptr) refuse(errno);
  const int number = opened.release();  // closedir closes it
  const std::string start = concat(name, detail::partial_mark);
  std::size_t removed = 0;
  while (const dirent* entry = readdir(entries)) {
    if (std::strncmp(entry->d_name, start.c_str(), start.size()) != 0) continue;
    const Descriptor file{openat(number, entry->d_name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
    if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (unlinkat(number, entry->d_name, 0) == 0) ++removed;
  }
  closedir(entries);
  return removed;
}

}  // namespace dist::io
