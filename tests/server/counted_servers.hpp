// Parameter servers in this process that count their messages, and a context to reach them. They do not publish their
// memory, so clients send messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dist/rpc/local_transport.hpp>
#include <dist/server/client.hpp>
#include <dist/server/shard.hpp>
#include <dist/server/shard_server.hpp>

namespace dist_test {

class CountedServer {
 public:
  explicit CountedServer(const dist::net::Endpoint& own) : server_(own, {}, counted()) {}

  [[nodiscard]] std::uint64_t incarnation() const { return store_.incarnation(); }
  /// Returns the number of messages since the last call.
  [[nodiscard]] int pulls() { return pulls_.exchange(0); }
  [[nodiscard]] int pushes() { return pushes_.exchange(0); }
  [[nodiscard]] std::uint64_t bytes_pushed() const { return bytes_pushed_; }
  /// Returns the size of the pull requests.
  [[nodiscard]] std::uint64_t bytes_of_pulls() const { return bytes_of_pulls_; }
  void stop() { server_.stop(); }

 private:
  [[nodiscard]] std::vector<dist::rpc::Method<dist::Local::Exchange>> counted() {
    auto methods = dist::server::store_methods<dist::Local::Exchange>(store_);
    std::erase_if(methods, [](const auto& method) { return method.name == "store.place"; });
    for (auto& method : methods) {
      std::atomic<int>* const count = method.name == "store.pull"   ? &pulls_
                                      : method.name == "store.push" ? &pushes_
                                                                    : nullptr;
      if (count == nullptr) continue;
      auto handler = std::make_shared<decltype(method.handler)>(std::move(method.handler));
      method.handler = [this, count, handler](dist::Local::Exchange& exchange) {
        ++*count;
        (count == &pushes_ ? bytes_pushed_ : bytes_of_pulls_) += dist::rpc::size_of(exchange.pieces());
        (*handler)(exchange);
      };
    }
    return methods;
  }

  std::atomic<int> pulls_{0}, pushes_{0};
  std::atomic<std::uint64_t> bytes_pushed_{0}, bytes_of_pulls_{0};
  dist::server::ShardServer store_;
  dist::Local::Server server_;
};

/// A dist::ServerContext of several servers.
class CountedServers {
 public:
  explicit CountedServers(std::size_t count) {
    std::vector<dist::net::Endpoint> endpoints;
    for (std::size_t i = 0; i < count; ++i) {
      endpoints.push_back({"counted", std::to_string(i + 1)});
      servers_.emplace_back(endpoints.back());
    }
    clients_ = std::make_unique<dist::server::Clients<dist::Local>>(
        std::move(endpoints), dist::server::ClientOptions{.channel = {.reconnect = dist::net::Milliseconds{1}}});
  }

  template <class T>
  [[nodiscard]] dist::server::Clients<T>& clients() const {
    return *clients_;
  }
  [[nodiscard]] CountedServer& operator[](std::size_t server) { return servers_[server]; }
  [[nodiscard]] dist::server::ShardAddress create(std::size_t server, dist::server::ShardId id, std::size_t rows,
                                                  float value) {
    const dist::server::ShardAddress place{server, servers_[server].incarnation(), id, "shard_" + std::to_string(id)};
    clients_->of(server, place.incarnation)->create<float>({id, place.name, rows, 1, 0}, value);
    return place;
  }

 private:
  std::deque<CountedServer> servers_;
  std::unique_ptr<dist::server::Clients<dist::Local>> clients_;
};

}  // namespace dist_test
