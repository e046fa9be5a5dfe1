#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace dist {

/// Opens /dev/null as standard input, output and error if they are closed. Otherwise the next file or socket could
/// receive the program's output. Call it before code that opens descriptors.
inline void fill_standard_descriptors() noexcept {
  int next = 0;
  do next = ::open("/dev/null", O_RDWR);
  while (next >= 0 && next <= STDERR_FILENO);
  if (next >= 0) ::close(next);
}

namespace detail {

/// Returns `descriptor`, or a duplicate if its number is 0, 1 or 2; these are then opened as /dev/null. Returns -1 and
/// sets errno on failure.
[[nodiscard]] inline int above_standard(int descriptor) noexcept {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(descriptor);
  fill_standard_descriptors();
  return moved;
}

}  // namespace detail

}  // namespace dist
