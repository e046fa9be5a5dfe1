#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/standard_descriptors.hpp>

namespace dist {

/// Memory that other processes of this machine and user can map as well, at whatever address they like: an anonymous
/// file in memory, which vanishes with the last process that knows it, however that ends. Pages come with their first
/// touch, zeroed. Moves, does not copy.
///
/// An MPI window does not have these properties: its size is limited by the shared-memory file system, it starts 8 bytes off
/// a cache line, and a killed rank leaves its file.
class SharedMemory {
 public:
  /// What another process needs to attach to it.
  struct Name {
    int process;
    int descriptor;
    std::size_t bytes;
  };

  /// The most bytes that one may have: the limit on the size of files (ulimit -f) counts here.
  [[nodiscard]] static std::size_t largest() noexcept {
    rlimit limit{};
    const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? static_cast<std::size_t>(limit.rlim_cur) : static_cast<std::size_t>(-1);
  }

  /// New memory. `bytes` cost addresses only, until they are touched. Throws OutOfMemory.
  explicit SharedMemory(std::size_t bytes)
      : bytes_(bytes), descriptor_(detail::above_standard(memfd_create("dist", MFD_CLOEXEC))) {
    if (descriptor_ < 0) refuse("there is no descriptor for it", errno);
    // Beyond the limit the system would end the process by a signal.
    if (bytes > largest()) {
      close(descriptor_);
      refuse("it cannot be so large", EFBIG);
    }
    if (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
      const int code = errno;
      close(descriptor_);
      refuse("it cannot be so large", code);
    }
    void* const mapped = map();
    if (mapped == MAP_FAILED) {
      const int code = errno;
      close(descriptor_);
      refuse("there is no address space for it", code);
    }
    data_ = static_cast<std::byte*>(mapped);
  }
  /// The memory of another process, or none where the system does not allow it: another user's, or one in a container
  /// of its own. Where it is only to be read, the system sees to that.
  [[nodiscard]] static std::optional<SharedMemory> attach(const Name& name, bool only_to_read = false) {
    const std::string path = concat("/proc/", name.process, "/fd/", name.descriptor);
    SharedMemory attached;
    attached.bytes_ = name.bytes;
    attached.descriptor_ = detail::above_standard(open(path.c_str(), (only_to_read ? O_RDONLY : O_RDWR) | O_CLOEXEC));
    if (attached.descriptor_ < 0) return std::nullopt;
    void* const mapped = attached.map(only_to_read ? PROT_READ : PROT_READ | PROT_WRITE);
    if (mapped == MAP_FAILED) return std::nullopt;
    attached.data_ = static_cast<std::byte*>(mapped);
    return attached;
  }
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~SharedMemory() {
    if (data_ != nullptr) munmap(data_, bytes_);
    if (descriptor_ >= 0) close(descriptor_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  [[nodiscard]] Name name() const noexcept { return {getpid(), descriptor_, bytes_}; }

 private:
  SharedMemory() = default;

  [[nodiscard]] void* map(int protection = PROT_READ | PROT_WRITE) const noexcept {
    return mmap(nullptr, bytes_, protection, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  }
  [[noreturn]] void refuse(const char* why, int code) const {
    throw OutOfMemory(concat("No memory that processes share, of ", bytes_, " bytes"),
                      concat(why, ": ", std::strerror(code)),
                      "Raise the limits on virtual memory, file size and open files (ulimit -v, -f, -n)");
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace dist
