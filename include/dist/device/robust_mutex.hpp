#pragma once

#include <pthread.h>

#include <cerrno>
#include <cstdint>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/device/wait.hpp>

namespace dist {

/// A mutex for the threads of all processes that map its memory, at whatever address. It has no destructor, because other
/// processes may still use it.
///
/// If a process ends while it holds the mutex, the next one gets it. What the mutex guards may then be half changed, so
/// whoever changes that leaves a note there first.
class RobustMutex {
 public:
  RobustMutex() noexcept {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  RobustMutex(const RobustMutex&) = delete;
  RobustMutex& operator=(const RobustMutex&) = delete;

  [[nodiscard]] bool try_lock() noexcept {
    int code = pthread_mutex_trylock(&mutex_);
    if (code == EOWNERDEAD) code = pthread_mutex_consistent(&mutex_);
    return code == 0;
  }
  /// Returns false if the mutex was not free within `longest`.
  [[nodiscard]] bool lock_for(std::chrono::nanoseconds longest) noexcept {
    if (try_lock()) return true;
    // POSIX waits for a mutex by a clock that may be set back.
    const std::int64_t end = detail::monotonic_nanoseconds() + longest.count();
    bool locked = false;
    for (std::int64_t left = longest.count(); !locked && left > 0; left = end - detail::monotonic_nanoseconds())
      unlocked_.wait([&] { return locked = try_lock(); }, std::min(left, between_looks));
    return locked || try_lock();
  }
  void unlock() noexcept {
    pthread_mutex_unlock(&mutex_);
    unlocked_.notify();
  }

 private:
  /// A process that ends with the mutex notifies nobody.
  static constexpr std::int64_t between_looks = 10'000'000;

  pthread_mutex_t mutex_;
  detail::SharedEventCount unlocked_;
};

}  // namespace dist
