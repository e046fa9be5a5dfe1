/// Parameter servers and workers that are threads of a test, and their coordinator, by any transport.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dist/cluster/simple_resolver.hpp>
#include <dist/comm/local_transport.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/serve.hpp>
#include <dist/server/served.hpp>
#include <dist/server/session.hpp>
#include <dist/strategy/parameter_server.hpp>

#include "net/ports.hpp"

namespace dist_test {

template <class T>
class ServedJob {
 public:
  ServedJob(std::size_t servers, std::size_t workers, dist::ParameterServerOptions options = {}) {
    const auto endpoints = free_endpoints(servers + workers);
    for (std::size_t i = 0; i < endpoints.size(); ++i)
      cluster_.append(i < servers ? dist::TaskType::parameter_server : dist::TaskType::worker,
                      {to_string(endpoints[i])});
    for (const dist::Task task : cluster_.tasks()) {
      std::packaged_task<void()> serves{[cluster = cluster_, task] {
        static_cast<void>(dist::serve<T>(dist::SimpleResolver{cluster, task}, {.linger = dist::net::Milliseconds{0}}));
      }};
      ends_.push_back(serves.get_future());
      threads_.emplace_back(std::move(serves));
    }
    strategy_.emplace(dist::SimpleResolver{cluster_, dist::Task{dist::TaskType::chief, 0}}, std::move(options));
    coordinator_.emplace(*strategy_);
  }
  ServedJob(const ServedJob&) = delete;
  ServedJob& operator=(const ServedJob&) = delete;
  ~ServedJob() {
    coordinator_.reset();
    strategy_.reset();
    // A worker that the coordinator has not greeted before it ended waits for another one.
    while (!ended()) {
      const dist::server::Session<T> session{dist::server::served_by(without_servers(), "a test")};
      static_cast<void>(ended());
    }
    for (std::thread& thread : threads_) thread.join();
    for (std::future<void>& end : ends_) end.get();
  }

  [[nodiscard]] dist::ParameterServer<T>& strategy() { return *strategy_; }
  [[nodiscard]] dist::ClusterCoordinator<dist::ParameterServer<T>>& coordinator() { return *coordinator_; }
  [[nodiscard]] auto scope() { return strategy_->scope(); }

 private:
  [[nodiscard]] bool ended() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{500};
    return std::all_of(ends_.begin(), ends_.end(), [&](const std::future<void>& end) {
      return end.wait_until(until) == std::future_status::ready;
    });
  }
  [[nodiscard]] dist::ClusterSpec without_servers() const {
    dist::ClusterSpec workers;
    for (const std::size_t index : cluster_.task_indices(dist::TaskType::worker))
      workers.add({dist::TaskType::worker, index}, cluster_.task_address({dist::TaskType::worker, index}));
    return workers;
  }

  dist::ClusterSpec cluster_;
  std::vector<std::future<void>> ends_;
  std::vector<std::thread> threads_;
  std::optional<dist::ParameterServer<T>> strategy_;
  std::optional<dist::ClusterCoordinator<dist::ParameterServer<T>>> coordinator_;
};

/// Calls within the process that are counted, by their methods.
struct Counted {
  static constexpr bool within_process = true;
  using Server = dist::Local::Server;
  using Exchange = dist::Local::Exchange;
  using Reply = dist::Local::Reply;
  using Call = dist::Local::Call;

  class Channel : public dist::Local::Channel {
   public:
    using dist::Local::Channel::Channel;
    [[nodiscard]] Call start(std::string_view method, dist::rpc::GatherList pieces,
                             const dist::rpc::CallOptions& options) {
      {
        const std::lock_guard lock{mutex()};
        ++counts()[std::string{method}];
      }
      return dist::Local::Channel::start(method, pieces, options);
    }
  };

  /// How many calls of a method there were since the last time.
  static std::size_t take(const std::string& method) {
    const std::lock_guard lock{mutex()};
    return std::exchange(counts()[method], 0);
  }

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::map<std::string, std::size_t>& counts() {
    static std::map<std::string, std::size_t> counts;
    return counts;
  }
};

}  // namespace dist_test
