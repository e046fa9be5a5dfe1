#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/device/wait.hpp>

namespace dist::cuda {

/// How long the host waits for a GPU where nobody says it.
inline constexpr std::chrono::nanoseconds longest_wait = std::chrono::minutes{10};

/// Returns when `is_over()`, which asks the runtime without waiting. Throws DeadlineExceeded after `timeout`, which is 0
/// for as long as it takes; `describe()` says whose work is waited for: "queue 1 of GPU 0".
template <class IsOver, class Describe>
void await(IsOver&& is_over, Describe&& describe, std::chrono::nanoseconds timeout = longest_wait) {
  constexpr ::dist::detail::SpinBudget budget = ::dist::detail::SpinBudget::own_core();
  constexpr timespec pause{0, 100'000};
  for (unsigned spin = 0; spin < budget.spins; ++spin) {
    if (is_over()) return;
    ::dist::detail::relax();
  }
  SlowWait slow;
  const std::int64_t begin = ::dist::detail::monotonic_nanoseconds();
  for (unsigned look = 0; !is_over(); ++look) {
    const std::int64_t waited = ::dist::detail::monotonic_nanoseconds() - begin;
    if (timeout.count() != 0 && waited >= timeout.count())
      throw DeadlineExceeded(
          text("Work was not done in time: ", describe()),
          text("the host waited ", static_cast<double>(waited) * 1e-9, " s for it"),
          "Look at nvidia-smi whether the GPU is busy or lost, and for a kernel that does not end, or "
          "set a longer timeout");
    slow.note([&] { return text("for ", describe()); });
    if (look < budget.yields)
      sched_yield();
    else
      nanosleep(&pause, nullptr);
  }
}

}  // namespace dist::cuda
