#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>

namespace dist::detail {

/// Extends `timeout` by `patience` times 5 s, or times `timeout` if that is shorter. For members that wait for events
/// between others, so that members with more precise information report first.
[[nodiscard]] constexpr std::chrono::nanoseconds longer(std::chrono::nanoseconds timeout, int patience) noexcept {
  const auto slack = patience * std::min<std::chrono::nanoseconds>(timeout, std::chrono::seconds{5});
  return slack < std::chrono::nanoseconds::max() - timeout ? timeout + slack : std::chrono::nanoseconds::max();
}

/// The maximum wait in nanoseconds for the timeout of a collective; 0 means no limit. Throws InvalidArgument if it is
/// negative.
[[nodiscard]] std::int64_t longest_wait(std::chrono::nanoseconds timeout);

/// The exit status after a deadline in a wait that no exception could end.
inline constexpr int exit_late = 71;

/// Prints the blocking call and the reason, calls `before_end()`, and ends the process without destructors, which would
/// wait, too.
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

#ifndef DIST_COMPILED
#include <dist/comm/health/timeout.ipp>
#endif
