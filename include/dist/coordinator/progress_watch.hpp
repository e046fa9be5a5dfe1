#pragma once

#include <cstdint>
#include <mutex>

#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/kept_function.hpp>
#include <dist/core/threads.hpp>

namespace dist {

/// Reports that work does not get on: a thread that looks ten times in each `timeout` whether something has ended, and
/// calls `report` with the time since then where nothing has for a `timeout`, though there is something to do; again
/// after each further `timeout` (spec L19).
class ProgressWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;

  struct Progress {
    std::uint64_t ended = 0;  ///< so far
    bool busy = false;        ///< there is something to do
  };

  /// `timeout` is positive. Both functions are called in the thread of the watch.
  ProgressWatch(Duration timeout, detail::KeptFunction<Progress> look, detail::KeptFunction<void, Duration> report);
  ProgressWatch(const ProgressWatch&) = delete;
  ProgressWatch& operator=(const ProgressWatch&) = delete;
  ~ProgressWatch();

 private:
  void run();

  const Duration timeout_;
  const detail::KeptFunction<Progress> look_;
  const detail::KeptFunction<void, Duration> report_;
  std::mutex mutex_;
  detail::ConditionVariable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/coordinator/progress_watch.ipp>
#endif
