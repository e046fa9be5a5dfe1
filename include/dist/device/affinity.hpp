#pragma once

#include <pthread.h>
#include <sched.h>

#include <cstddef>
#include <vector>

namespace dist {

/// The processors that this process may run on, in ascending order: what a launcher or a container left it.
[[nodiscard]] inline std::vector<std::size_t> allowed_processors() {
  std::vector<std::size_t> processors;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (std::size_t processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &set)) processors.push_back(processor);
  if (processors.empty()) processors.push_back(0);
  return processors;
}

/// Asks that the calling thread stay on `processor`. A refusal is not an error: placement is advice.
inline void pin_this_thread(std::size_t processor) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof set, &set));
}

}  // namespace dist
