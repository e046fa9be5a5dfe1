/// A HandshakeServer in a thread of the test.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/net/handshake_server.hpp>
#include <dist/net/listen.hpp>

namespace dist_test {

/// Admits each rank below the size of the world once.
class Host {
 public:
  using Options = dist::net::HandshakeServer::Options;

  Host(const dist::net::Endpoint& own, Options options)
      : world_(options.world),
        reception_(dist::net::listen_at(own, {}), std::move(options)),
        thread_([this] { run(); }) {}
  ~Host() { stop(); }

  /// Stops the server; its state can be read afterwards.
  void stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// While true, all peers are refused.
  std::atomic<bool> busy{false};
  [[nodiscard]] std::size_t guests() const { return guests_; }
  [[nodiscard]] const dist::net::HandshakeServer& reception() const { return reception_; }
  /// The admitted peers; read after `stop`.
  std::vector<dist::net::Accepted> entered;

 private:
  void run() {
    std::set<std::uint64_t> ranks;
    while (!stopped_) {
      std::vector<pollfd> entries;
      reception_.add_entries(entries);
      poll(entries.data(), entries.size(), reception_.next().poll_timeout(dist::net::Milliseconds{20}));
      reception_.advance(
          [&](const dist::net::Handshake& hello) -> std::optional<dist::net::Refusal> {
            if (busy) return dist::net::Refusal{"busy", "others are here", "wait", true};
            if (hello.rank >= world_) return dist::net::Refusal{"no such rank", "outside", "count"};
            if (!ranks.insert(hello.rank).second)
              return dist::net::Refusal{dist::concat("Worker ", hello.rank, " has joined twice"), "again", "count"};
            return std::nullopt;
          },
          [&](dist::net::Accepted guest) {
            entered.push_back(std::move(guest));
            ++guests_;
          });
    }
  }

  std::uint64_t world_;
  dist::net::HandshakeServer reception_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> guests_{0};
  std::thread thread_;
};

inline dist::net::Handshake worker(std::uint64_t rank, std::uint64_t world = 4, std::uint64_t checksum = 1) {
  return {dist::net::Handshake::Role::worker, rank, world, checksum, "host", "machine"};
}

}  // namespace dist_test
