#pragma once

#include <dist/coordinator/coordinator_state.hpp>
#include <dist/core/thread_name.hpp>

namespace dist {

[[gnu::cold]] DIST_INLINE ProgressWatch::ProgressWatch(Duration timeout, detail::UniqueFunction<Progress> look,
                                                       detail::UniqueFunction<void, Duration> report)
    : timeout_(timeout), look_(std::move(look)), report_(std::move(report)), thread_([this] { run(); }) {}
[[gnu::cold]] DIST_INLINE ProgressWatch::~ProgressWatch() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}
[[gnu::cold]] DIST_INLINE void ProgressWatch::run() {
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

[[gnu::cold]] DIST_INLINE bool TransientFailures::tolerates_server(std::size_t server) {
  const std::lock_guard lock{mutex_};
  return ++of_servers_[server] < server_failures_;
}
[[gnu::cold]] DIST_INLINE bool TransientFailures::tolerates_timeout() {
  const std::lock_guard lock{mutex_};
  return ++timeouts_ <= ignored_timeouts_;
}

}  // namespace dist
