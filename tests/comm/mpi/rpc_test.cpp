// ranks: 2 3 4
// thread levels: multiple
// Rank 0 makes the calls; the others serve what it asks them for until it has done everything.
#include <dist/comm/mpi/rpc.hpp>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/server/archive.hpp>

#include "conformance/rpc_transport.hpp"

namespace {

using dist::Mpi;
using dist::mpi::endpoint_of_rank;

std::size_t rank() { return dist::mpi::detail::rank_in(MPI_COMM_WORLD); }
std::size_t size() { return dist::mpi::detail::size_of(MPI_COMM_WORLD); }

constexpr std::size_t control_port = 60'000;

/// What a rank does for rank 0: "start PORT SECRET", "stop PORT", "end".
class RemoteServers {
 public:
  void serve() {
    const Mpi::Server control{endpoint_of_rank(rank(), control_port),
                              {},
                              {{"start",
                                [this](Mpi::Exchange& exchange) {
                                  dist::ArchiveReader request{exchange.pieces(), "A request of rank 0"};
                                  dist::rpc::ServerOptions options{.silence = conformance::rpc_silence};
                                  const auto port = request.get<std::string>();
                                  options.secret = request.get<std::string>();
                                  const std::lock_guard lock{mutex_};
                                  servers_[port] =
                                      std::make_unique<Mpi::Server>(endpoint_of_rank(rank(), std::stoul(port)), options,
                                                                    conformance::rpc_methods<Mpi>());
                                  exchange.reply({});
                                }},
                               {"stop",
                                [this](Mpi::Exchange& exchange) {
                                  const std::lock_guard lock{mutex_};
                                  servers_.erase(conformance::rpc_text(exchange.pieces()));
                                  exchange.reply({});
                                }},
                               {"end", [this](Mpi::Exchange& exchange) {
                                  exchange.reply({});
                                  ended_ = true;
                                }}}};
    while (!ended_) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    conformance::RpcServerState<Mpi>::get().kept.clear();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Mpi::Server>> servers_;
  std::atomic<bool> ended_{false};
};

void ask(std::size_t of, const char* method, const std::vector<std::byte>& bytes) {
  Mpi::Channel channel{endpoint_of_rank(of, control_port), {}};
  const dist::rpc::Piece piece = bytes;
  channel.call(method, {&piece, 1}, {std::chrono::seconds{60}, true});
}

struct MpiKit {
  using Transport = Mpi;
  static constexpr bool pauses = false;  // whoever is silent is lost for good

  static bool calls() { return rank() == 0; }
  static std::size_t next_port() {
    static std::size_t port = 1000;
    return ++port;
  }
  static dist::net::Endpoint endpoint() {
    const std::size_t port = next_port();
    return endpoint_of_rank(1 + port % (size() - 1), port);
  }
  static dist::net::Endpoint own_endpoint() { return endpoint_of_rank(rank(), next_port()); }

  /// A server in another process, which lives on.
  class Peer {
   public:
    Peer(const dist::net::Endpoint& own, const std::string& secret)
        : rank_(dist::mpi::rank_of(own, size())), port_(own.port) {
      ask(rank_, "start", dist::ArchiveWriter{}.put(port_).put(secret).take());
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() { kill(); }
    void kill() { ask(rank_, "stop", conformance::rpc_bytes(port_)); }

   private:
    std::size_t rank_;
    std::string port_;
  };
};

}  // namespace

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(rpc_transports, MpiKit);
}  // namespace conformance

TEST_CASE("the other processes serve until rank 0 has done everything") {
  if (rank() != 0) return RemoteServers{}.serve();
  for (std::size_t other = 1; other < size(); ++other) ask(other, "end", {});
}
