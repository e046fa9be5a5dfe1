#pragma once

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>

#include <dist/core/duration.hpp>

namespace dist::detail {

/// std::condition_variable without the rest of `<condition_variable>` (stop tokens, semaphores), which is a tenth of
/// the compile time of `<dist/dist.hpp>`. Uses std::chrono::steady_clock.
class ConditionVariable {
 public:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  ConditionVariable() noexcept {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;
  /// Does nothing in a forked child, where pthread_cond_destroy would wait for threads that do not exist.
  ~ConditionVariable() {
    if (process_ == getpid()) pthread_cond_destroy(&condition_);
  }

  void notify_one() noexcept { pthread_cond_signal(&condition_); }
  void notify_all() noexcept { pthread_cond_broadcast(&condition_); }

  /// Waits for a notification. May wake up spuriously.
  void wait(Lock& lock) { pthread_cond_wait(&condition_, lock.mutex()->native_handle()); }
  template <class Done>
  void wait(Lock& lock, Done done) {
    while (!done()) wait(lock);
  }
  /// Waits for a notification, at most until `end`. May wake up spuriously.
  void wait_until(Lock& lock, Clock::time_point end) {
    const std::int64_t count = std::chrono::nanoseconds{end.time_since_epoch()}.count();
    const std::int64_t nanoseconds = count > 0 ? count : 0;
    const timespec at{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &at);
  }
  /// Waits until `done()` returns true or the time is `end`. Returns the last result of `done()`.
  template <class Done>
  bool wait_until(Lock& lock, Clock::time_point end, Done done) {
    while (!done()) {
      if (Clock::now() >= end) return false;
      wait_until(lock, end);
    }
    return true;
  }
  void wait_for(Lock& lock, std::chrono::nanoseconds time) { wait_until(lock, after(time)); }
  template <class Done>
  bool wait_for(Lock& lock, std::chrono::nanoseconds time, Done done) {
    return wait_until(lock, after(time), done);
  }

 private:
  [[nodiscard]] static Clock::time_point after(std::chrono::nanoseconds time) noexcept {
    const Clock::time_point now = Clock::now();
    return time < Clock::time_point::max() - now ? now + time : Clock::time_point::max();
  }

  pthread_cond_t condition_;
  pid_t process_ = getpid();
};

}  // namespace dist::detail
