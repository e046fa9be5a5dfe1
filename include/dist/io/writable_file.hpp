#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/io/file.hpp>

namespace dist::io {

/// While this object exists, a write beyond the file size limit (ulimit -f) fails in this thread without the signal
/// that would end the program: the signal is blocked, and consumed if a write of this thread has sent it. Signal
/// handlers are unchanged.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() noexcept {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    pending_before_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, signal(), &before_);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;
  ~NoFileSizeSignal() {
    constexpr timespec at_once{};
    if (raised_ && !pending_before_) sigtimedwait(signal(), nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  /// Call this after a write has failed with EFBIG: it may have sent the signal.
  void raised() noexcept { raised_ = true; }

 private:
  [[nodiscard]] static const sigset_t* signal() noexcept {
    static const sigset_t set = [] {
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, SIGXFSZ);
      return one;
    }();
    return &set;
  }

  sigset_t before_;
  bool pending_before_ = false;
  bool raised_ = false;
};

namespace detail {

/// Returns the suggestion for a write error `error`.
[[nodiscard]] constexpr const char* writing_suggestion(int error) noexcept {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "Free space on the disk, or write to another one";
    case EFBIG:
      return "Raise the limit on the size of files (ulimit -f)";
    case EACCES:
    case EPERM:
    case EROFS:
      return "Check the permissions of its folder, or write to another one";
    case ENOENT:
    case ENOTDIR:
      return "Create the folder first, or correct the path";
    case EMFILE:
    case ENFILE:
      return "Close files, or raise the limit on open files (ulimit -n)";
    case ENAMETOOLONG:
      return "Use a shorter name";
    default:
      return "Check the disk and the file system that hold it";
  }
}

/// Writes all of `bytes`: `write(rest)`, a system call, writes the first part of the rest and returns its size. Calls
/// `fail(error)`, which throws, on errors. Exceeding the file size limit is one, without a signal.
void write_all(std::span<const std::byte> bytes, auto&& write, auto&& fail) {
  NoFileSizeSignal no_signal;
  while (!bytes.empty()) {
    const ssize_t count = write(bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = count == 0 ? EIO : errno;
      if (error == EFBIG) no_signal.raised();
      fail(error);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace detail

/// Creates the folder `path` and its missing parents. Throws FileError, naming the folder, if the system call fails.
inline void make_folders(const std::string& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) continue;
    const int error = errno;
    if (::access(folder.c_str(), F_OK) != 0)
      throw FileError(folder, "cannot be created as a folder", std::strerror(error), detail::writing_suggestion(error));
  }
}

/// A new file that is written at any offset, unbuffered.
class WritableFile {
 public:
  /// Throws FileError if the file exists already, or cannot be created.
  explicit WritableFile(std::string path) : name_(std::move(path)) {
    do descriptor_.reset(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    while (!descriptor_ && errno == EINTR);
    if (!descriptor_) fail("cannot be created", errno);
  }

  /// Writes all of `bytes` at `offset`. Throws FileError if the system writes fewer; some may then be in the file.
  /// Exceeding the file size limit is such an error, without a signal.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
    detail::write_all(
        bytes,
        [&](std::span<const std::byte> rest) {
          return ::pwrite(descriptor_.get(), rest.data(), rest.size(),
                          static_cast<off_t>(offset + bytes.size() - rest.size()));
        },
        [&](int error) { fail("cannot be written", error); });
  }
  /// Truncates the file to `size` bytes. Returns true if that succeeded.
  bool truncate(std::uint64_t size) const noexcept {
    return ::ftruncate(descriptor_.get(), static_cast<off_t>(size)) == 0;
  }
  /// Closes the file. Throws FileError if the system reports lost data, for the last time. A second call does nothing.
  void close() {
    const int descriptor = descriptor_.release();
    if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR) fail("cannot be written", errno);
  }
  /// True until `close`.
  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(descriptor_); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[noreturn]] void fail(std::string_view problem, int error) const {
    throw FileError(name_, problem, std::strerror(error), detail::writing_suggestion(error));
  }

  std::string name_;
  Descriptor descriptor_;
};

}  // namespace dist::io
