#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dist/context/input_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/client.hpp>
#include <dist/server/clients.hpp>
#include <dist/server/store_memory_handle.hpp>

namespace dist::detail {

/// Its address identifies the type.
template <class T>
inline constexpr char type_mark = 0;

/// A resource of a worker, or why it could not be made.
struct WorkerResource {
  std::shared_ptr<void> value;
  const void* type = nullptr;  ///< `type_mark` of it
  rpc::Outcome failure = {};
  std::shared_ptr<void> variables = {};  ///< of a worker's copy of an object (coordinator/worker_copy.hpp)
};

/// A function needs a resource that could not be made on this worker. Its outcome is that of the function that makes
/// it.
class ResourceError : public std::exception {
 public:
  explicit ResourceError(rpc::Outcome outcome) : outcome_(std::move(outcome)) {}

  [[nodiscard]] const rpc::Outcome& outcome() const noexcept { return outcome_; }
  [[nodiscard]] const char* what() const noexcept override { return outcome_.why.c_str(); }

 private:
  rpc::Outcome outcome_;
};

/// Where a worker stands in the cluster, as its coordinator says when it greets it.
struct WorkerIdentity {
  std::uint64_t worker = 0;
  std::uint64_t workers = 1;
  std::uint64_t replicas_in_sync = 1;
  std::vector<std::string> servers = {};  ///< the addresses of the parameter servers
  server::WorkerOptions options = {};
};

/// What a worker keeps for a coordinator from one greeting to the next. After each the resources are made anew.
class WorkerSession {
 public:
  /// `to_servers`: how its functions call parameter servers.
  explicit WorkerSession(WorkerIdentity place, rpc::ChannelOptions to_servers = {})
      : place_(std::move(place)), to_servers_(std::move(to_servers)) {}

  [[nodiscard]] const WorkerIdentity& place() const noexcept { return place_; }
  [[nodiscard]] InputContext input_context() const {
    return {static_cast<std::size_t>(place_.workers), static_cast<std::size_t>(place_.worker),
            static_cast<std::size_t>(place_.replicas_in_sync)};
  }
  /// The number of the parameter server with that address, or the number of all where there is none.
  [[nodiscard]] std::size_t server_at(const std::string& address) const;

  /// The clients of the parameter servers, made when they are first asked for.
  template <rpc::Transport T>
  [[nodiscard]] std::shared_ptr<server::Clients<T>> clients() {
    const std::lock_guard lock{mutex_};
    std::shared_ptr<void>& kept = clients_[&type_mark<T>];
    if (!kept) {
      kept = std::make_shared<server::Clients<T>>(
          endpoints(), server::ClientOptions{.channel = to_servers_, .shared_memory = place_.options.shared_memory});
    }
    return std::static_pointer_cast<server::Clients<T>>(kept);
  }
  /// The coordinator's strategy as it is on this worker, made when it is first asked for.
  template <class S>
  [[nodiscard]] S& strategy() {
    const auto clients_of_servers = clients<typename S::Transport>();
    const std::lock_guard lock{mutex_};
    std::shared_ptr<void>& kept = strategies_[&type_mark<S>];
    if (!kept) kept = std::make_shared<S>(clients_of_servers, place_.options);
    return *static_cast<S*>(kept.get());
  }

  /// Keeps a resource as long as the session, unless there is one of this number.
  void keep(std::uint64_t id, WorkerResource resource);
  /// Throws ArchiveError where there is no resource of that number and type, and ResourceError where it was not made.
  [[nodiscard]] void* resource(std::uint64_t id, const void* type) const;
  /// WorkerResource::variables of it.
  [[nodiscard]] std::shared_ptr<void> variables_of(std::uint64_t id) const;

  /// Asks its functions to stop, because nobody waits for them.
  void end() noexcept { ended_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_relaxed); }
  /// Asks the function of a run, and of those before, to stop.
  void stop(std::uint64_t run) noexcept {
    for (std::uint64_t before = stopped_.load(); before < run && !stopped_.compare_exchange_weak(before, run);) {
    }
  }
  [[nodiscard]] bool is_stopped(std::uint64_t run) const noexcept {
    return run <= stopped_.load(std::memory_order_relaxed);
  }
  /// Returns false where a function of the session runs already.
  [[nodiscard]] bool begin_function() noexcept { return !busy_.exchange(true, std::memory_order_acquire); }
  void end_function() noexcept { busy_.store(false, std::memory_order_release); }

 private:
  [[nodiscard]] std::vector<net::Endpoint> endpoints() const;

  const WorkerIdentity place_;
  const rpc::ChannelOptions to_servers_;
  mutable std::mutex mutex_;
  // By the `type_mark` of the transport, and of the strategy. Resources go first.
  std::map<const void*, std::shared_ptr<void>> clients_;
  std::map<const void*, std::shared_ptr<void>> strategies_;
  std::map<std::uint64_t, WorkerResource> resources_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> busy_{false};
  std::atomic<std::uint64_t> stopped_{0};  ///< the latest run that is to stop
};

/// Makes the resource of a worker from an archive that begins with what its function takes.
using ResourceMaker = WorkerResource(WorkerSession&, ArchiveReader&);

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/coordinator/worker_session.ipp>
#endif
