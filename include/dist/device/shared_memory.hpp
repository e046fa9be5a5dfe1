#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// Memory that other processes of this machine and user can map, at any address: an anonymous memory file (memfd),
/// which is freed with the last process that uses it, even after a crash. Pages are allocated, zeroed, on first access.
/// Move-only.
///
/// Used instead of MPI windows: these are limited by the shared-memory file system, start 8 bytes off a cache line, and
/// leave files after a rank is killed.
class SharedMemory {
 public:
  /// The information that another process needs to attach.
  struct Name {
    int process;        ///< id of the process that owns the memory
    int descriptor;     ///< number of the file in that process
    std::size_t bytes;  ///< size of the memory
  };

  /// Returns the maximum size in bytes, which the file size limit (ulimit -f) restricts.
  [[nodiscard]] static std::size_t largest() noexcept;

  /// Creates memory. Pages are only allocated on access. Throws OutOfMemory.
  explicit SharedMemory(std::size_t bytes);
  /// Maps the memory of another process, read-only if `only_to_read`. Returns nothing if the system denies it, because
  /// of another user or container.
  [[nodiscard]] static std::optional<SharedMemory> attach(const Name& name, bool only_to_read = false);
  /// Takes the memory of `other`, which must then only be destroyed or assigned.
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  /// Exchanges the memory of both objects.
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  /// The address of the memory in this process.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// The size in bytes.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  /// The input of `attach` in another process.
  [[nodiscard]] Name name() const noexcept { return {getpid(), descriptor_, bytes_}; }

 private:
  SharedMemory() = default;

  [[nodiscard]] void* map(int protection = PROT_READ | PROT_WRITE) const noexcept;
  [[noreturn]] void refuse(const char* why, int code) const;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/shared_memory.ipp>
#endif
