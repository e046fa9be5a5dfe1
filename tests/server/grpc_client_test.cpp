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

using dist::server::Reach;

/// A parameter server in a process of its own, whose clients send messages ("process") or also read its memory ("machine"); or that
/// takes no pulls by messages ("quiet").
struct ServerProcess {
  ServerProcess(const dist::net::Endpoint& own, const std::string& reach)
      : process("a parameter server", {"DIST_TEST_PORT=" + own.port, "DIST_TEST_PARENT=" + std::to_string(getpid()),
                                       "DIST_TEST_REACH=" + reach}) {}
  void kill() { process.kill(); }

  support::Spawned process;
};

template <Reach reach>
struct GrpcKit {
  using Transport = dist::Grpc;

  static constexpr bool calls() { return true; }
  static dist::net::Endpoint endpoint() { return dist_test::free_endpoints(1).front(); }
  struct Peer : ServerProcess {
    explicit Peer(const dist::net::Endpoint& own)
        : ServerProcess(own, reach == Reach::machine ? "machine" : "process") {}
  };
};

using ByMessages = GrpcKit<Reach::process>;
using InMemory = GrpcKit<Reach::machine>;

}  // namespace

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, ByMessages);
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, InMemory);
}  // namespace conformance

TEST_CASE("a client on the machine of its server pulls from memory, and sends what it pushes") {
  const dist::net::Endpoint endpoint = InMemory::endpoint();
  std::optional<ServerProcess> process{std::in_place, endpoint, "quiet"};
  dist::server::ClientOptions options;
  options.wait_for_server = std::chrono::seconds{60};
  dist::server::Client<dist::Grpc> client{0, endpoint, options};
  client.greet();
  client.create({1, "w", 2, 2}, 1.0F);
  const std::vector<float> twos(4, 2);
  CHECK(client.push(1, dist::sum, std::span{twos}) == dist::server::Pushed{1, 0});
  CHECK(conformance::pulled<float>(client, 1, 4) == std::vector<float>(4, 3));

  // The memory of a server that was killed is no longer read, also where another one has its address.
  process->kill();
  process.reset();
  CHECK_THROWS_AS(conformance::pulled<float>(client, 1, 4), dist::ServerUnavailable);
  process.emplace(endpoint, "quiet");
  dist::server::Client<dist::Grpc> next{0, endpoint, options};
  next.greet();
  CHECK_THROWS_AS(conformance::pulled<float>(client, 1, 4), dist::Error);
}

TEST_CASE("a parameter server" * doctest::skip()) {
  const std::string parent = std::getenv("DIST_TEST_PARENT");
  const std::string reach = std::getenv("DIST_TEST_REACH");
  dist::server::Store store{reach == "process" ? Reach::process : Reach::machine};
  auto methods = dist::server::store_methods<dist::Grpc::Exchange>(store);
  if (reach == "quiet") std::erase_if(methods, [](const auto& each) { return each.name == "store.pull"; });
  const dist::Grpc::Server server{{"127.0.0.1", std::getenv("DIST_TEST_PORT")}, {}, std::move(methods)};
  while (std::to_string(getppid()) == parent) std::this_thread::sleep_for(std::chrono::milliseconds{100});
}
