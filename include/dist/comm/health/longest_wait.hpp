#pragma once

#include <cstdint>
#include <limits>

#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>

namespace dist::detail {

/// What a timeout of collectives allows a wait to take, in nanoseconds: 0 means as long as it takes. Throws
/// InvalidArgument for a negative timeout.
[[nodiscard]] inline std::int64_t longest_wait(std::chrono::nanoseconds timeout) {
  if (timeout.count() < 0)
    throw InvalidArgument("A timeout of collectives is negative", text(timeout, " was given"),
                          "Give a positive timeout, or 0 to wait as long as it takes");
  return timeout.count() == 0 ? std::numeric_limits<std::int64_t>::max() : timeout.count();
}

}  // namespace dist::detail
