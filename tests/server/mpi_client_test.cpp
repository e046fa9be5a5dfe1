// ranks: 2
// thread levels: multiple
// Parameter servers in another process, whose memory the clients reach.
#include <dist/server/client.hpp>

#include <span>
#include <string>
#include <vector>

#include <dist/comm/mpi/rpc.hpp>

#include "conformance/server_client.hpp"
#include "support/remote_servers.hpp"

namespace {

struct Served {
  Served(const dist::net::Endpoint& own, const std::string& choice) : server{own, {}, methods(choice == quiet)} {}

  /// Of a server that takes neither pushes nor pulls by messages, where `is_quiet`.
  [[nodiscard]] std::vector<dist::rpc::Method<dist::Mpi::Exchange>> methods(bool is_quiet) {
    auto all = dist::server::store_methods<dist::Mpi::Exchange>(store);
    if (is_quiet)
      std::erase_if(all, [](const auto& each) { return each.name == "store.push" || each.name == "store.pull"; });
    return all;
  }

  static constexpr const char* quiet = "quiet";
  dist::server::Store store{dist::server::Reach::machine};
  dist::Mpi::Server server;
};
using MpiKit = support::RemoteServers<Served>;

}  // namespace

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, MpiKit);
}  // namespace conformance

TEST_CASE("a client on the machine of its server sends no messages to push and pull") {
  if (!MpiKit::calls()) return;
  const dist::net::Endpoint endpoint = MpiKit::endpoint();
  const MpiKit::Peer peer{endpoint, Served::quiet};
  dist::server::Client<dist::Mpi> client{0, endpoint};
  client.create({1, "w", 2, 2}, 1.0F);
  const std::vector<float> twos(4, 2);
  CHECK(client.push(1, dist::sum, std::span{twos}) == dist::server::Pushed{1, 0});
  CHECK(conformance::pulled<float>(client, 1, 4) == std::vector<float>(4, 3));
}

TEST_CASE("the other process serves until rank 0 has done everything") { MpiKit::serve_or_end(); }
