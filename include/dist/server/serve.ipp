#pragma once

#include <cstdlib>

#include <dist/core/text.hpp>
#include <dist/server/serve.hpp>

namespace dist::server::detail {

[[gnu::cold]] DIST_INLINE bool has_other_hosts(const ClusterSpec& cluster, const net::Endpoint& own,
                                               std::string_view source) {
  for (const Task task : cluster.tasks()) {
    if (cluster.task_address(task).empty()) continue;
    const net::Endpoint other = task_endpoint(cluster, task, source);
    if (other.host != own.host && !net::names_loopback(other.host)) return true;
  }
  return false;
}
[[gnu::cold]] DIST_INLINE std::string coordinator_of(const ClusterSpec& cluster) {
  constexpr Task chief{TaskType::chief, 0};
  if (!cluster.has(chief)) return "a coordinator";
  const std::string& address = cluster.task_address(chief);
  return address.empty() ? to_string(chief) : concat(to_string(chief), " at ", address);
}

[[gnu::cold]] DIST_INLINE void note(std::optional<SlowWait>& wait, const std::string& coordinator) {
  if (!wait) wait.emplace(/*quiet=*/0);
  wait->note([&] { return concat("for ", coordinator); });
}

[[gnu::cold]] DIST_INLINE EndWatch::EndWatch(std::string self, net::Milliseconds timeout, int status)
    : thread_([this, self = std::move(self), timeout, status] {
        std::unique_lock lock{mutex_};
        if (changed_.wait_for(lock, timeout, [&] { return ended_; })) return;
        log_line(concat(self, " exits with a function still running, which did not end within ", timeout,
                        ": a long-running function should check for stop requests"));
        std::_Exit(status);
      }) {}
[[gnu::cold]] DIST_INLINE EndWatch::~EndWatch() {
  {
    const std::lock_guard lock{mutex_};
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace dist::server::detail

namespace dist::server {

[[gnu::cold]] DIST_INLINE std::vector<Served> served_by(const ClusterSpec& cluster, std::string_view source) {
  std::vector<Served> all;
  for (const Task task : cluster.tasks())
    if (task.type != TaskType::chief) all.push_back({task, task_endpoint(cluster, task, source)});
  return all;
}

}  // namespace dist::server
