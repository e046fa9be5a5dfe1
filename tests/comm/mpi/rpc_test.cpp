// ranks: 2 3 4
// thread levels: multiple
// Rank 0 makes the calls; the others serve what it asks them for until it has done everything.
#include <dist/comm/mpi/rpc.hpp>

#include <string>

#include "conformance/rpc_transport.hpp"
#include "support/remote_servers.hpp"

namespace {

struct Served {
  Served(const dist::net::Endpoint& own, const std::string& secret)
      : server{own, {.secret = secret, .silence = conformance::rpc_silence}, conformance::rpc_methods<dist::Mpi>()} {}

  dist::Mpi::Server server;
};

struct MpiKit : support::RemoteServers<Served> {
  static constexpr bool pauses = false;  // whoever is silent is lost for good
};

}  // namespace

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(rpc_transports, MpiKit);
}  // namespace conformance

TEST_CASE("the other processes serve until rank 0 has done everything") {
  MpiKit::serve_or_end();
  conformance::RpcServerState<dist::Mpi>::get().kept.clear();
}
