/// Parameter servers and workers as threads of a test, and their coordinator, with any transport.
#pragma once

#include <concepts>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/local_job.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/strategy/parameter_server.hpp>

#include "net/ports.hpp"

namespace dist_test {

struct Counted;

template <class T>
class ServedJob {
 public:
  ServedJob(std::size_t servers, std::size_t workers, dist::ParameterServerOptions options = {})
      : tasks_(cluster_of(servers, workers), "test"),
        strategy_(dist::SimpleResolver{tasks_.cluster(), dist::Task{dist::TaskType::chief, 0}},
                  adapted(std::move(options))),
        coordinator_(strategy_) {}

  [[nodiscard]] dist::ParameterServer<T>& strategy() { return strategy_; }
  [[nodiscard]] dist::ClusterCoordinator<dist::ParameterServer<T>>& coordinator() { return coordinator_; }
  [[nodiscard]] auto scope() { return strategy_.scope(); }

 private:
  /// Disables shared memory, so that pushes and pulls are calls, which are counted.
  [[nodiscard]] static dist::ParameterServerOptions adapted(dist::ParameterServerOptions options) {
    if constexpr (std::same_as<T, Counted>) options.shared_memory = dist::server::SharedMemoryAccess::none;
    return options;
  }
  [[nodiscard]] static dist::ClusterSpec cluster_of(std::size_t servers, std::size_t workers) {
    const auto endpoints = free_endpoints(servers + workers);
    dist::ClusterSpec cluster;
    for (std::size_t i = 0; i < endpoints.size(); ++i)
      cluster.append(i < servers ? dist::TaskType::parameter_server : dist::TaskType::worker,
                     {to_string(endpoints[i])});
    return cluster;
  }

  dist::TaskThreads<T> tasks_;
  dist::ParameterServer<T> strategy_;
  dist::ClusterCoordinator<dist::ParameterServer<T>> coordinator_;
};

/// Counts calls within the process, by method, and replies that the caller has awaited: "store.pull reply".
struct Counted {
  static constexpr bool within_process = true;
  using Server = dist::Local::Server;
  using Exchange = dist::Local::Exchange;
  using Reply = dist::Local::Reply;

  class Call : public dist::Local::Call {
   public:
    Call(dist::Local::Call call, std::string_view method)
        : dist::Local::Call(std::move(call)), reply_(std::string{method} + " reply") {}
    [[nodiscard]] Reply reply() {
      count(reply_);
      return dist::Local::Call::reply();
    }

   private:
    std::string reply_;
  };
  class Channel : public dist::Local::Channel {
   public:
    using dist::Local::Channel::Channel;
    [[nodiscard]] Call start(std::string_view method, dist::rpc::ChunkSpan pieces,
                             const dist::rpc::CallOptions& options) {
      count(std::string{method});
      return {dist::Local::Channel::start(method, pieces, options), method};
    }
  };

  /// Returns the number of calls of a method since the last query.
  static std::size_t take(const std::string& method) {
    const std::lock_guard lock{mutex()};
    return std::exchange(counts()[method], 0);
  }

 private:
  static void count(const std::string& what) {
    const std::lock_guard lock{mutex()};
    ++counts()[what];
  }
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
