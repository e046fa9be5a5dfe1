#pragma once

#include <malloc.h>

namespace dist {

/// Lets this process keep large blocks of memory that were freed for the next ones, where they would go back to the system and
/// come again page by page. It holds for all memory of the process, up to 1 GiB that is free, so it is called where a process
/// exists to do what needs it: programs that serve, and XLA's programs on CPUs.
inline void reuse_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 28);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 1 << 26);
}

}  // namespace dist
