#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace dist {

/// Opens /dev/null as standard input, output and error where they are closed. A file or socket that got one of their
/// numbers would receive what the program and its libraries print. Call it before code that opens descriptors by itself.
inline void fill_standard_descriptors() noexcept {
  int next = 0;
  do next = ::open("/dev/null", O_RDWR);
  while (next >= 0 && next <= STDERR_FILENO);
  if (next >= 0) ::close(next);
}

namespace detail {

/// Returns `descriptor`, or another descriptor of the same file if its number belongs to standard input, output or error,
/// which then are filled. Returns -1 with errno set on failure.
[[nodiscard]] inline int above_standard(int descriptor) noexcept {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(descriptor);
  fill_standard_descriptors();
  return moved;
}

}  // namespace detail

}  // namespace dist
