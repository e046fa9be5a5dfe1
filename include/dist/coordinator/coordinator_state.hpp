#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dist/coordinator/closure_queue.hpp>
#include <dist/coordinator/transient_failures.hpp>
#include <dist/core/pointers.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/coordinator_options.hpp>
#include <dist/server/store_place.hpp>

namespace dist::detail {

/// What a coordinator shares with the threads of its workers, which may outlive it.
class CoordinatorState {
 public:
  /// There are `workers` workers at first.
  CoordinatorState(const CoordinatorOptions& its_options, rpc::ChannelOptions its_channel, std::size_t replicas,
                   std::vector<net::Endpoint> its_servers, std::size_t workers,
                   server::WorkerOptions its_worker_options = {})
      : options(its_options),
        channel(std::move(its_channel)),
        replicas_in_sync(replicas),
        servers(std::move(its_servers)),
        worker_options(its_worker_options),
        queue(options.queue_capacity),
        failures(options.server_failures, options.ignored_timeouts.value_or(workers / 10)),
        workers_(workers) {}

  const CoordinatorOptions options;
  const rpc::ChannelOptions channel;
  const std::size_t replicas_in_sync;
  const std::vector<net::Endpoint> servers;
  const server::WorkerOptions worker_options;
  ClosureQueue queue;
  TransientFailures failures;
  std::atomic<std::size_t> connected{0};  ///< workers that are there

  [[nodiscard]] std::size_t workers() const noexcept { return workers_.load(); }
  void set_workers(std::size_t workers) noexcept { workers_ = workers; }

  /// The number of a resource that all workers make, by this message.
  [[nodiscard]] std::size_t add_resource(std::vector<std::byte> message) {
    const std::lock_guard lock{mutex_};
    resources_.push_back(std::make_shared<const std::vector<std::byte>>(std::move(message)));
    return resources_.size() - 1;
  }
  /// How to make the resource of that number, or nullptr where there is none yet.
  [[nodiscard]] std::shared_ptr<const std::vector<std::byte>> resource(std::size_t number) const {
    const std::lock_guard lock{mutex_};
    return number < resources_.size() ? resources_[number] : nullptr;
  }

 private:
  std::atomic<std::size_t> workers_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> resources_;
};

}  // namespace dist::detail
