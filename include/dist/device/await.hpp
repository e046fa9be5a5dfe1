#pragma once

#include <cstdint>
#include <string_view>

#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/device/wait.hpp>

namespace dist {

/// How long the host waits for a device where nobody says it.
inline constexpr std::chrono::nanoseconds longest_device_wait = std::chrono::minutes{10};

namespace detail {

/// Returns when `is_over()`, which asks a device's runtime without waiting, and is asked again after each `pause()`, of at
/// most a millisecond or so. Throws DeadlineExceeded after `timeout`, which is 0 for as long as it takes; `describe()` says
/// whose work is waited for: "queue 1 of GPU 0", and `look` what to look at: "Look at nvidia-smi whether the GPU is lost".
template <class IsOver, class Pause, class Describe>
void await(IsOver&& is_over, Pause&& pause, Describe&& describe, std::chrono::nanoseconds timeout,
           std::string_view look) {
  SlowWait slow;
  for (const std::int64_t begin = monotonic_nanoseconds(); !is_over(); pause()) {
    const std::int64_t waited = monotonic_nanoseconds() - begin;
    if (timeout.count() != 0 && waited >= timeout.count())
      throw DeadlineExceeded(concat("Work was not done in time: ", describe()),
                             concat("the host waited ", std::chrono::nanoseconds{waited}, " for it"),
                             concat(look, ", or set a longer timeout"));
    slow.note([&] { return concat("for ", describe()); });
  }
}

}  // namespace detail
}  // namespace dist
