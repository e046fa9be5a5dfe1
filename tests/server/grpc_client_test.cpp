#include <dist/server/client.hpp>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <dist/comm/grpc/transport.hpp>

#include "conformance/server_client.hpp"
#include "net/ports.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/spawned.hpp"

namespace {

struct GrpcKit {
  using Transport = dist::Grpc;

  static constexpr bool calls() { return true; }
  static dist::net::Endpoint endpoint() { return dist_test::free_endpoints(1).front(); }
  class Peer {
   public:
    explicit Peer(const dist::net::Endpoint& own)
        : process_("a parameter server",
                   {"DIST_TEST_PORT=" + own.port, "DIST_TEST_PARENT=" + std::to_string(getpid())}) {}
    void kill() { process_.kill(); }

   private:
    support::Spawned process_;
  };
};

}  // namespace

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, GrpcKit);
}  // namespace conformance

TEST_CASE("a parameter server" * doctest::skip()) {
  const std::string parent = std::getenv("DIST_TEST_PARENT");
  dist::server::Store store;
  const dist::Grpc::Server server{
      {"127.0.0.1", std::getenv("DIST_TEST_PORT")}, {}, dist::server::store_methods<dist::Grpc::Exchange>(store)};
  while (std::to_string(getppid()) == parent) std::this_thread::sleep_for(std::chrono::milliseconds{100});
}
