#pragma once

#include <concepts>
#include <cstddef>
#include <vector>

#include <dist/context/store.hpp>
#include <dist/core/kept_function.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/client.hpp>
#include <dist/server/error.hpp>
#include <dist/server/store_place.hpp>

namespace dist {

/// What a ClusterCoordinator asks of its strategy, once: where workers and parameter servers are, how they are called,
/// how many replicas share a step, and how workers use the servers.
template <class S>
concept CoordinatedStrategy = rpc::Transport<typename S::Transport> && requires(const S& strategy) {
  { strategy.worker_endpoints() } -> std::convertible_to<std::vector<net::Endpoint>>;
  { strategy.server_endpoints() } -> std::convertible_to<std::vector<net::Endpoint>>;
  { strategy.channel_options() } -> std::convertible_to<rpc::ChannelOptions>;
  { strategy.num_replicas_in_sync() } -> std::convertible_to<std::size_t>;
  { strategy.worker_options() } -> std::convertible_to<server::WorkerOptions>;
};

/// One that notices by itself that a parameter server is gone, also where no function uses it. It calls what it is given last;
/// an empty function ends that.
template <class S>
concept ReportsLosses = CoordinatedStrategy<S> &&
    requires(const S& strategy, detail::KeptFunction<void, const ServerUnavailable&> on_loss) {
  strategy.set_on_loss(on_loss);
};

/// One whose variables have copies on the workers, where it is, too: scheduled functions get its replica context.
template <class S>
concept HasWorkerStrategy = CoordinatedStrategy<S> && RemoteStore<typename S::Store>;

/// One whose workers end with it: a worker that was added later is tied to it, too.
template <class S>
concept AttendsWorkers = CoordinatedStrategy<S> && requires(const S& strategy, const net::Endpoint& worker) {
  strategy.attend_worker(std::size_t{}, worker);
};

/// A CoordinatedStrategy that is a list of workers, without variables.
template <rpc::Transport T>
class WorkerList {
 public:
  using Transport = T;

  explicit WorkerList(std::vector<net::Endpoint> workers, rpc::ChannelOptions channel = {},
                      std::vector<net::Endpoint> servers = {})
      : workers_(std::move(workers)), servers_(std::move(servers)), channel_(std::move(channel)) {}

  [[nodiscard]] const std::vector<net::Endpoint>& worker_endpoints() const noexcept { return workers_; }
  /// The servers that functions call, whose loss is not that of a worker (spec L15).
  [[nodiscard]] const std::vector<net::Endpoint>& server_endpoints() const noexcept { return servers_; }
  [[nodiscard]] const rpc::ChannelOptions& channel_options() const noexcept { return channel_; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return 1; }
  [[nodiscard]] server::WorkerOptions worker_options() const noexcept { return {server::default_shared_memory<T>}; }

 private:
  std::vector<net::Endpoint> workers_;
  std::vector<net::Endpoint> servers_;
  rpc::ChannelOptions channel_;
};

}  // namespace dist
