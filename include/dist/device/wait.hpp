#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace dist::detail {

/// Tells the processor that this is a spin loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Nanoseconds of a clock that never goes back.
inline std::int64_t monotonic_nanoseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// How long a waiting thread keeps its core before it lets others run.
///
/// With a core per replica a peer is at most microseconds away, and spinning is the shortest wait. With more replicas
/// than cores the peer may need this very core, so the thread gives it up at once.
struct SpinBudget {
  unsigned spins;

  static constexpr SpinBudget own_core() { return {4'000}; }
  static constexpr SpinBudget shared_core() { return {16}; }
};

/// Waits until `word` is no longer `old`: spins within the budget, then sleeps until it is notified.
inline std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t old,
                                     SpinBudget budget) noexcept {
  for (unsigned spin = 0; spin < budget.spins; ++spin) {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    relax();
  }
  for (;;) {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    word.wait(old, std::memory_order_acquire);
  }
}

}  // namespace dist::detail
