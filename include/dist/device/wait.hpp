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

/// How long a waiting thread keeps its core: so many looks at what it waits for, then so many between which it lets
/// others run. Afterwards it sleeps.
///
/// With a core per replica a peer is at most microseconds away, and spinning is the shortest wait. With more replicas
/// than cores the peer may need this very core, so the thread gives it up at once; and as being woken from sleep takes
/// longer than a short collective, it looks again a hundred times before it sleeps.
struct SpinBudget {
  unsigned spins;
  unsigned yields = 0;

  static constexpr SpinBudget own_core() { return {4'000, 1'000}; }
  static constexpr SpinBudget shared_core() { return {16, 100}; }
  /// Longer than it takes to wake a thread, so that of two that take turns neither sleeps because the other one was late.
  static constexpr SpinBudget of_a_wake() { return {100, 150}; }
};

/// Looks within the budget whether `is_over()`; returns what it saw last.
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

/// An event count: threads sleep here until what they wait for may have come. A notification costs one look at a
/// shared counter while nobody sleeps. `flags` tell the system what may wait: FUTEX_PRIVATE_FLAG for threads of one
/// process, 0 for those of all processes that map its memory, where zeroed memory is one for which nobody waits.
template <int flags>
class BasicEventCount {
 public:
  /// Returns when `awaited()` holds, after a `notify`, after `longest` nanoseconds, or for no reason.
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

  /// Wakes all sleepers if `awaited()`, which is asked only when there are some. What it looks at must have been
  /// written in a sequentially consistent way before.
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
