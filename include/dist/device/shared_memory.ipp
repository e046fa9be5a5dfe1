#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <dist/core/standard_descriptors.hpp>
#include <dist/device/shared_memory.hpp>

namespace dist {

DIST_INLINE std::size_t SharedMemory::largest() noexcept {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? static_cast<std::size_t>(limit.rlim_cur) : static_cast<std::size_t>(-1);
}

DIST_INLINE SharedMemory::SharedMemory(std::size_t bytes)
    : bytes_(bytes), descriptor_(detail::above_standard(memfd_create("dist", MFD_CLOEXEC))) {
  if (descriptor_ < 0) refuse("no descriptor is available", errno);
  // Beyond the limit, a signal would terminate the process.
  if (bytes > largest()) {
    close(descriptor_);
    refuse("it is too large", EFBIG);
  }
  if (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
    const int code = errno;
    close(descriptor_);
    refuse("it is too large", code);
  }
  void* const mapped = map();
  if (mapped == MAP_FAILED) {
    const int code = errno;
    close(descriptor_);
    refuse("no address space is available", code);
  }
  data_ = static_cast<std::byte*>(mapped);
}

DIST_INLINE std::optional<SharedMemory> SharedMemory::attach(const Name& name, bool only_to_read) {
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

DIST_INLINE SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

DIST_INLINE SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

DIST_INLINE void* SharedMemory::map(int protection) const noexcept {
  return mmap(nullptr, bytes_, protection, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
}

DIST_COLD void SharedMemory::refuse(const char* why, int code) const {
  throw OutOfMemory(concat("Could not create shared memory of ", bytes_, " bytes"),
                    concat(why, ": ", std::strerror(code)),
                    "Raise the limits on virtual memory, file size and open files (ulimit -v, -f, -n)");
}

}  // namespace dist
