#pragma once

#include <cstdint>
#include <limits>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>

namespace dist::detail {

/// Longer than `timeout` by `patience` times 5 s, or times itself where that is shorter: for members that wait for what
/// happens between others, so that those that know best who is missing are the first to say so.
[[nodiscard]] constexpr std::chrono::nanoseconds longer(std::chrono::nanoseconds timeout, int patience) noexcept {
  const auto slack = patience * std::min<std::chrono::nanoseconds>(timeout, std::chrono::seconds{5});
  return slack < std::chrono::nanoseconds::max() - timeout ? timeout + slack : std::chrono::nanoseconds::max();
}

/// What a timeout of collectives allows a wait to take, in nanoseconds: 0 means as long as it takes. Throws
/// InvalidArgument for a negative timeout.
[[nodiscard]] inline std::int64_t longest_wait(std::chrono::nanoseconds timeout) {
  if (timeout.count() < 0)
    throw InvalidArgument("A timeout of collectives is negative", concat(timeout, " was given"),
                          "Give a positive timeout, or 0 to wait as long as it takes");
  return timeout.count() == 0 ? std::numeric_limits<std::int64_t>::max() : timeout.count();
}

}  // namespace dist::detail
