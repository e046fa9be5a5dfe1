#pragma once

#include <sched.h>
#include <time.h>

#include <utility>

#include <dist/device/slow_wait.hpp>
#include <dist/device/wait.hpp>

namespace dist::cuda {

/// The default timeout for waits of the host.
inline constexpr std::chrono::nanoseconds longest_wait = longest_device_wait;

/// Waits until `is_over()`, which queries the runtime without blocking. Throws DeadlineExceeded after `timeout` (0:
/// never). `describe()` returns the name of the work: "queue 1 of GPU 0".
template <class IsOver, class Describe>
void await(IsOver&& is_over, Describe&& describe, std::chrono::nanoseconds timeout = longest_wait) {
  static constexpr ::dist::detail::SpinBudget budget = ::dist::detail::SpinBudget::own_core();
  for (unsigned spin = 0; spin < budget.spins; ++spin) {
    if (is_over()) return;
    ::dist::detail::relax();
  }
  auto pause = [turn = 0U]() mutable {
    constexpr timespec while_asleep{0, 100'000};
    if (turn++ < budget.yields)
      sched_yield();
    else
      nanosleep(&while_asleep, nullptr);
  };
  ::dist::detail::await(std::forward<IsOver>(is_over), pause, std::forward<Describe>(describe), timeout,
                        "Check with nvidia-smi whether the GPU is busy or lost, look for a kernel that does not end");
}

}  // namespace dist::cuda
