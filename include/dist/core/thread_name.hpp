#pragma once

#include <sys/prctl.h>

#include <array>
#include <string_view>

namespace dist::detail {

/// The name of a thread, at most 15 characters, as shown by debuggers, `top -H` and traces.
using ThreadName = std::array<char, 16>;

/// Names the calling thread. Longer names are cut.
inline void name_this_thread(std::string_view name) noexcept {
  ThreadName kept{};
  name.copy(kept.data(), kept.size() - 1);
  static_cast<void>(prctl(PR_SET_NAME, kept.data()));
}
[[nodiscard]] inline ThreadName name_of_this_thread() noexcept {
  ThreadName name{};
  static_cast<void>(prctl(PR_GET_NAME, name.data()));
  return name;
}

}  // namespace dist::detail
