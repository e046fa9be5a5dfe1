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

#include <dist/rpc/grpc/transport.hpp>

#include "conformance/server_client.hpp"
#include "net/ports.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/soon.hpp"
#include "support/spawned.hpp"

namespace {

using dist::server::Reach;
using dist::server::SharedMemoryAccess;

const std::vector<float> twos(4, 2);

/// A parameter server in a separate process. Its clients send messages ("process") or also use its memory ("machine").
/// Or it rejects pull messages ("no pulls"), or pull and push messages ("no messages").
struct ServerProcess {
  ServerProcess(const dist::net::Endpoint& own, const std::string& reach)
      : process("a parameter server", {"DIST_TEST_PORT=" + own.port, "DIST_TEST_PARENT=" + std::to_string(getpid()),
                                       "DIST_TEST_REACH=" + reach}) {}
  void kill() { process.kill(); }

  support::Spawned process;
};

template <Reach reach, SharedMemoryAccess access = SharedMemoryAccess::read>
struct GrpcKit {
  using Transport = dist::Grpc;
  static constexpr SharedMemoryAccess shared_memory = access;

  static dist::net::Endpoint endpoint() { return dist_test::free_endpoints(1).front(); }
  struct Peer : ServerProcess {
    explicit Peer(const dist::net::Endpoint& own)
        : ServerProcess(own, reach == Reach::machine ? "machine" : "process") {}
  };
};

using ByMessages = GrpcKit<Reach::process>;
using MemoryRefused = GrpcKit<Reach::machine, SharedMemoryAccess::none>;
using MemoryRead = GrpcKit<Reach::machine>;
using MemoryWritten = GrpcKit<Reach::machine, SharedMemoryAccess::write>;

/// A server that rejects some messages, and a client.
struct QuietPair {
  QuietPair(const char* what, SharedMemoryAccess access) : process(std::in_place, endpoint, what) {
    options.wait_for_server = std::chrono::seconds{60};
    options.shared_memory = access;
    client.emplace(0, endpoint, options);
    client->greet();
    client->create({1, "w", 2, 2}, 1.0F);
  }

  dist::net::Endpoint endpoint = MemoryRead::endpoint();
  std::optional<ServerProcess> process;
  dist::server::ClientOptions options;
  std::optional<dist::server::Client<dist::Grpc>> client;
};

}  // namespace

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, ByMessages);
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, MemoryRefused);
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, MemoryRead);
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, MemoryWritten);
}  // namespace conformance

TEST_CASE("a client on the server's machine pulls from memory, and pushes by messages") {
  QuietPair pair{"no pulls", SharedMemoryAccess::read};
  CHECK(pair.client->push(1, dist::sum, std::span{twos}) == dist::server::Pushed{1, 0});
  CHECK(conformance::pulled<float>(*pair.client, 1, 4) == std::vector<float>(4, 3));
}

TEST_CASE("a client with write access pushes to and pulls from the server's memory") {
  QuietPair pair{"no messages", SharedMemoryAccess::write};
  CHECK(pair.client->push(1, dist::sum, std::span{twos}) == dist::server::Pushed{1, 0});
  CHECK(conformance::pulled<float>(*pair.client, 1, 4) == std::vector<float>(4, 3));
}

TEST_CASE("the memory of a killed server is not used, even if another one has its address") {
  for (const SharedMemoryAccess access : {SharedMemoryAccess::read, SharedMemoryAccess::write}) {
    QuietPair pair{access == SharedMemoryAccess::write ? "no messages" : "no pulls", access};
    dist::server::Client<dist::Grpc>& client = *pair.client;
    CHECK(conformance::pulled<float>(client, 1, 4) == std::vector<float>(4, 1));
    pair.process->kill();
    pair.process.reset();
    const auto throws = [&](const auto& use) {
      try {
        use();
      } catch (const dist::Error&) {
        return true;
      }
      return false;
    };
    CHECK(support::soon([&] { return throws([&] { conformance::pulled<float>(client, 1, 4); }); }));
    CHECK_THROWS_AS(conformance::pulled<float>(client, 1, 4), dist::ServerUnavailable);
    CHECK_THROWS_AS(client.push(1, dist::sum, std::span{twos}), dist::ServerUnavailable);
    pair.process.emplace(pair.endpoint, "no messages");
    dist::server::Client<dist::Grpc> next{0, pair.endpoint, pair.options};
    next.greet();
    CHECK_THROWS_AS(conformance::pulled<float>(client, 1, 4), dist::Error);
    CHECK_THROWS_AS(client.push(1, dist::sum, std::span{twos}), dist::Error);
  }
}

TEST_CASE("a parameter server" * doctest::skip()) {
  const std::string parent = std::getenv("DIST_TEST_PARENT");
  const std::string reach = std::getenv("DIST_TEST_REACH");
  dist::server::ShardServer store{reach == "process" ? Reach::process : Reach::machine};
  auto methods = dist::server::store_methods<dist::Grpc::Exchange>(store);
  std::erase_if(methods, [&](const auto& each) {
    return (each.name == "store.pull" && reach.starts_with("no ")) ||
           (each.name == "store.push" && reach == "no messages");
  });
  const dist::Grpc::Server server{{"127.0.0.1", std::getenv("DIST_TEST_PORT")}, {}, std::move(methods)};
  while (std::to_string(getppid()) == parent) std::this_thread::sleep_for(std::chrono::milliseconds{100});
}
