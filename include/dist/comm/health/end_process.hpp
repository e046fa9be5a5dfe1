#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

#include <dist/core/error.hpp>

namespace dist::detail {

/// The status of a process that ends because a deadline passed where no exception could end the wait.
inline constexpr int exit_late = 71;

/// Prints what this process is stuck in and why it ends, calls `before_end()`, and ends it without running destructors,
/// which would wait, too.
template <class BeforeEnd>
[[noreturn]] void end_process(std::string_view stuck_in, const Error& why, int status,
                              BeforeEnd&& before_end) noexcept {
  const std::string message =
      concat("dist: stuck in ", stuck_in, " and ended with status ", status, ": ", why.what(), "\n");
  static_cast<void>(!::write(STDERR_FILENO, message.data(), message.size()));
  before_end();
  _exit(status);
}

}  // namespace dist::detail
