#pragma once

#include <sys/prctl.h>

#include <dist/core/thread_name.hpp>

namespace dist::detail {

DIST_INLINE void name_this_thread(std::string_view name) noexcept {
  ThreadName kept{};
  name.copy(kept.data(), kept.size() - 1);
  static_cast<void>(prctl(PR_SET_NAME, kept.data()));
}

DIST_INLINE ThreadName name_of_this_thread() noexcept {
  ThreadName name{};
  static_cast<void>(prctl(PR_GET_NAME, name.data()));
  return name;
}

}  // namespace dist::detail
