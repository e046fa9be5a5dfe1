#pragma once

#include <limits>

#include <dist/comm/health/timeout.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist::detail {

DIST_INLINE std::int64_t longest_wait(std::chrono::nanoseconds timeout) {
  if (timeout.count() < 0)
    throw InvalidArgument("A timeout of collectives is negative", concat(timeout, " was given"),
                          "Give a positive timeout, or 0 to wait as long as it takes");
  return timeout.count() == 0 ? std::numeric_limits<std::int64_t>::max() : timeout.count();
}

}  // namespace dist::detail
