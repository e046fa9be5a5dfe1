// Parameter servers and workers as threads of a test.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/server/serve.hpp>
#include <dist/server/session.hpp>

namespace dist_test {

using dist::ClusterSpec;
using dist::Local;
using dist::Task;
using dist::TaskType;

inline constexpr Task ps_0{TaskType::parameter_server, 0}, ps_1{TaskType::parameter_server, 1},
    worker_0{TaskType::worker, 0};

/// A cluster of `ps` parameter servers and one worker.
inline ClusterSpec cluster_of(std::size_t ps) {
  ClusterSpec cluster{{TaskType::worker, {"worker:1"}}};
  for (std::size_t i = 0; i < ps; ++i) cluster.append(TaskType::parameter_server, {"ps" + std::to_string(i) + ":1"});
  return cluster;
}
inline std::vector<dist::server::Served> served(const ClusterSpec& cluster) {
  return dist::server::served_by(cluster, "a test");
}

/// A task of a cluster in a thread. A test ends it with a coordinator, or waits until it gives up.
class ServedThread {
 public:
  ServedThread(const ClusterSpec& cluster, Task task, dist::server::ServeOptions options = {},
               std::vector<dist::rpc::Method<Local::Exchange>> of_worker = {})
      : serve_{[=] {
          return dist::server::serve<Local>(dist::SimpleResolver{cluster, task}, options, of_worker);
        }},
        result_{serve_.get_future()},
        thread_{std::ref(serve_)} {}
  ServedThread(const ServedThread&) = delete;
  ServedThread& operator=(const ServedThread&) = delete;
  ~ServedThread() { thread_.join(); }

  [[nodiscard]] bool ends_within(std::chrono::milliseconds longest) const {
    return result_.wait_for(longest) == std::future_status::ready;
  }
  bool result() { return result_.get(); }

 private:
  std::packaged_task<bool()> serve_;  // outlives the thread, for ThreadSanitizer
  std::future<bool> result_;
  std::thread thread_;
};

}  // namespace dist_test
