#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace dist::detail {

/// Hints to the processor that this is a spin loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns the nanoseconds of a monotonic clock.
inline std::int64_t monotonic_nanoseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// The number of polls of a waiting thread before it sleeps: first spinning, then yielding between polls.
///
/// With a core per replica a peer is at most microseconds away, so spinning is fastest. With more replicas than cores
/// the peer may need this core, so the thread yields at once; a hundred times, because a wake-up takes longer than a
/// short collective.
struct SpinBudget {
  unsigned spins;
  unsigned yields = 0;

  static constexpr SpinBudget own_core() { return {4'000, 1'000}; }
  static constexpr SpinBudget shared_core() { return {16, 100}; }
  /// Longer than a wake-up, so that neither of two alternating threads sleeps because the other was late.
  static constexpr SpinBudget of_a_wake() { return {100, 150}; }
};

/// Polls `is_over()` within the budget. Returns the last result.
template <class IsOver>
bool look_within(SpinBudget budget, IsOver&& is_over) {
  for (unsigned spin = 0; spin < budget.spins; ++spin) {
    if (is_over()) return true;
    relax();
  }
  for (unsigned turn = 0; turn < budget.yields; ++turn) {
    if (is_over()) return true;
    sched_yield();
  }
  return is_over();
}

/// An event count: threads sleep until a condition may hold. Without sleepers, a notification costs one read of a
/// shared counter. `flags` are futex flags: FUTEX_PRIVATE_FLAG for threads of one process, 0 for all processes that map
/// the memory, where zeroed memory is a valid object without sleepers.
template <int flags>
class BasicEventCount {
 public:
  /// Sleeps until `awaited()` holds, a `notify`, `longest` nanoseconds have passed, or a spurious wake-up.
  template <class Awaited>
  void wait(Awaited&& awaited, std::int64_t longest) {
    sleepers_.fetch_add(1);
    const std::uint32_t before = calls_.load();
    if (!awaited()) {
      const timespec timeout{longest / 1'000'000'000, longest % 1'000'000'000};
      syscall(SYS_futex, &calls_, FUTEX_WAIT | flags, before, &timeout, nullptr, 0);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  /// Wakes all sleepers if `awaited()`, which is only called if there are any. Its inputs must have been written with
  /// sequential consistency before.
  template <class Awaited>
  void notify(Awaited&& awaited) {
    if (sleepers_.load() == 0 || !awaited()) return;
    calls_.fetch_add(1);
    syscall(SYS_futex, &calls_, FUTEX_WAKE | flags, INT_MAX, nullptr, nullptr, 0);
  }
  void notify() {
    notify([] { return true; });
  }

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> calls_{0};
};
using EventCount = BasicEventCount<FUTEX_PRIVATE_FLAG>;
using SharedEventCount = BasicEventCount<0>;

/// Waits until `word` differs from `old`: spins within the budget, then sleeps until notified. Returns the new value.
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
