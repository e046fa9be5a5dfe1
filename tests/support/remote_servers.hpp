/// Servers in other processes of MPI, for suites in which rank 0 makes the calls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/mpi/rpc.hpp>
#include <dist/server/archive.hpp>

namespace support {

/// A `Served{endpoint, choice}` is a server; what the choice means is for the test to say. The last case of a program is
/// `serve_or_end`: there the other ranks do what rank 0 asks for, until it has done everything.
template <class Served>
class RemoteServers {
 public:
  using Transport = dist::Mpi;

  static bool calls() { return rank() == 0; }
  /// An address of another process.
  static dist::net::Endpoint endpoint() {
    const std::size_t port = next_port();
    return dist::mpi::endpoint_of_rank(1 + port % (size() - 1), port);
  }
  static dist::net::Endpoint own_endpoint() { return dist::mpi::endpoint_of_rank(rank(), next_port()); }

  /// A server in another process, which lives on.
  class Peer {
   public:
    explicit Peer(const dist::net::Endpoint& own, const std::string& choice = "")
        : rank_(dist::mpi::rank_of(own, size())), port_(own.port) {
      ask(rank_, "start", dist::ArchiveWriter{}.put(port_).put(choice).take());
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() { kill(); }
    void kill() { ask(rank_, "stop", dist::to_bytes(port_)); }

   private:
    std::size_t rank_;
    std::string port_;
  };

  static void serve_or_end() {
    if (!calls()) return serve();
    for (std::size_t other = 1; other < size(); ++other) ask(other, "end", {});
  }

 private:
  using Exchange = dist::Mpi::Exchange;
  static constexpr std::size_t control_port = 60'000;

  static std::size_t rank() { return dist::mpi::detail::rank_in(MPI_COMM_WORLD); }
  static std::size_t size() { return dist::mpi::detail::size_of(MPI_COMM_WORLD); }
  static std::size_t next_port() {
    static std::size_t port = 1000;
    return ++port;
  }

  static void ask(std::size_t of, const char* method, const std::vector<std::byte>& bytes) {
    dist::Mpi::Channel channel{dist::mpi::endpoint_of_rank(of, control_port), {}};
    const dist::rpc::Piece piece = bytes;
    channel.call(method, {&piece, 1}, {std::chrono::seconds{60}, true});
  }
  static void serve() {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<Served>> servers;
    std::atomic<bool> ended{false};
    const auto start = [&](Exchange& exchange) {
      dist::ArchiveReader request{exchange.pieces(), "A request of rank 0"};
      const auto port = request.get<std::string>();
      const auto choice = request.get<std::string>();
      const std::lock_guard lock{mutex};
      servers[port] = std::make_unique<Served>(dist::mpi::endpoint_of_rank(rank(), std::stoul(port)), choice);
      exchange.reply({});
    };
    const auto stop = [&](Exchange& exchange) {
      dist::ArchiveReader request{exchange.pieces(), "A request of rank 0"};
      const std::lock_guard lock{mutex};
      servers.erase(request.get<std::string>());
      exchange.reply({});
    };
    const auto end = [&](Exchange& exchange) {
      exchange.reply({});
      ended = true;
    };
    const dist::Mpi::Server control{
        dist::mpi::endpoint_of_rank(rank(), control_port), {}, {{"start", start}, {"stop", stop}, {"end", end}}};
    while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
};

}  // namespace support
