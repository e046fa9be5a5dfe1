// Workers as servers of this process, for coordinators in the same process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dist/coordinator/coordinator_state.hpp>
#include <dist/coordinator/worker_service.hpp>

namespace dist_test {

/// Returns an unused address.
inline dist::net::Endpoint next_local_endpoint() {
  static std::atomic<int> port{0};
  return {"here", std::to_string(++port)};
}

template <class Transport>
class LocalWorkers {
 public:
  explicit LocalWorkers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add();
  }

  std::size_t add() {
    endpoints_.push_back(next_local_endpoint());
    services_.emplace_back();
    servers_.emplace_back();
    start(endpoints_.size() - 1);
    return endpoints_.size() - 1;
  }
  /// Starts a worker without its former state.
  void start(std::size_t worker) {
    services_[worker] = std::make_unique<dist::WorkerService<Transport>>();
    servers_[worker] = std::make_unique<typename Transport::Server>(endpoints_[worker], dist::rpc::ServerOptions{},
                                                                    services_[worker]->methods());
  }
  void stop(std::size_t worker) {
    servers_[worker].reset();
    services_[worker].reset();
  }

  [[nodiscard]] const dist::net::Endpoint& operator[](std::size_t worker) const { return endpoints_[worker]; }
  [[nodiscard]] const dist::WorkerService<Transport>& service(std::size_t worker) const { return *services_[worker]; }
  [[nodiscard]] dist::WorkerList<Transport> list(std::vector<dist::net::Endpoint> servers = {}) const {
    return dist::WorkerList<Transport>{endpoints_, {}, std::move(servers)};
  }

 private:
  std::vector<dist::net::Endpoint> endpoints_;
  std::vector<std::unique_ptr<dist::WorkerService<Transport>>> services_;
  std::vector<std::unique_ptr<typename Transport::Server>> servers_;
};

/// Returns the error of type E that `fn` throws.
template <class E, class Fn>
[[nodiscard]] std::optional<E> error_of(Fn&& fn) {
  try {
    fn();
  } catch (const E& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace dist_test
