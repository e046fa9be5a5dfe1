#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include <dist/core/duration.hpp>
#include <dist/core/kept_function.hpp>
#include <dist/core/thread_name.hpp>
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
  ProgressWatch(Duration timeout, detail::KeptFunction<Progress> look, detail::KeptFunction<void, Duration> report)
      : timeout_(timeout), look_(std::move(look)), report_(std::move(report)), thread_([this] { run(); }) {}
  ProgressWatch(const ProgressWatch&) = delete;
  ProgressWatch& operator=(const ProgressWatch&) = delete;
  ~ProgressWatch() {
    {
      const std::lock_guard lock{mutex_};
      ending_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  void run() {
    detail::name_this_thread("dist progress");
    std::uint64_t ended = 0;
    Clock::time_point since = Clock::now(), reported = since;
    std::unique_lock lock{mutex_};
    while (!changed_.wait_for(lock, timeout_ / 10, [&] { return ending_; })) {
      const Progress progress = look_();
      const Clock::time_point now = Clock::now();
      if (!progress.busy || progress.ended != ended) {
        ended = progress.ended;
        since = reported = now;
      } else if (now - reported >= timeout_) {
        reported = now;
        report_(now - since);
      }
    }
  }

  const Duration timeout_;
  const detail::KeptFunction<Progress> look_;
  const detail::KeptFunction<void, Duration> report_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace dist
