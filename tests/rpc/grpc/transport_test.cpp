#include <dist/rpc/grpc/transport.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/rpc_transport.hpp"
#include "net/ports.hpp"
#include "support/certificates.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/processes.hpp"
#include "support/spawned.hpp"
#include "support/what_throws.hpp"

namespace {

/// dist::Grpc with the certificates from the environment, if any.
struct CertifiedGrpc : dist::Grpc {
  template <class Options>
  static Options certified(Options options) {
    options.tls = dist::net::job_tls();
    return options;
  }
  struct Server : dist::Grpc::Server {
    Server(const dist::net::Endpoint& own, const dist::rpc::ServerOptions& options,
           std::vector<dist::rpc::Method<Exchange>> methods)
        : dist::Grpc::Server(own, certified(options), std::move(methods)) {}
  };
  struct Channel : dist::Grpc::Channel {
    Channel(const dist::net::Endpoint& server, const dist::rpc::ChannelOptions& options)
        : dist::Grpc::Channel(server, certified(options)) {}
  };
};

struct GrpcKit {
  using Transport = CertifiedGrpc;
  static constexpr bool pauses = true;

  static dist::net::Endpoint own_endpoint() { return endpoint(); }
  static dist::net::Endpoint endpoint() { return dist_test::free_endpoints(1).front(); }
  class Peer {
   public:
    Peer(const dist::net::Endpoint& own, const std::string& secret)
        : process_("a server of the suite", {"DIST_TEST_PORT=" + own.port, "DIST_TEST_SECRET=" + secret,
                                             "DIST_TEST_PARENT=" + std::to_string(getpid())}) {}
    void kill() { process_.kill(); }
    void pause() { process_.signal(SIGSTOP); }
    void resume() { process_.signal(SIGCONT); }

   private:
    support::Spawned process_;
  };
};

}  // namespace

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(rpc_transports, GrpcKit);
}  // namespace conformance

TEST_CASE("a server of the suite" * doctest::skip()) {
  const std::string parent = std::getenv("DIST_TEST_PARENT");
  dist::rpc::ServerOptions options;
  options.secret = std::getenv("DIST_TEST_SECRET");
  options.silence = conformance::rpc_silence;
  const CertifiedGrpc::Server server{
      {"127.0.0.1", std::getenv("DIST_TEST_PORT")}, options, conformance::rpc_methods<CertifiedGrpc>()};
  while (std::to_string(getppid()) == parent) std::this_thread::sleep_for(std::chrono::milliseconds{100});
}

TEST_CASE("transports of calls over TLS") {
  const support::TemporaryFolder folder;
  const dist::net::TlsFiles files = support::Authority{folder, "authority"}.task("all tasks");
  support::Spawned suite{
      "transports of calls<*",
      {"DIST_TLS_CA_FILE=" + files.authorities, "DIST_TLS_CERT_FILE=" + files.certificate,
       "DIST_TLS_KEY_FILE=" + files.key},
      folder.path("stderr"),
      // The behaviour on faulty connections, and most sizes, are the same without TLS.
      {"--subcase-exclude=*a peer that*,*restarted peer*,*stopped peer*,*of the clients: 1,*of the clients: 4,any "
       "bytes*"}};
  const std::optional<int> status = suite.exit_status_within(std::chrono::minutes{3});
  if (status != 0) MESSAGE(folder.read("stderr"));
  CHECK(status == 0);
  support::Spawned without_key{"transports of calls<*",
                               {"DIST_TLS_CA_FILE=" + files.authorities, "DIST_TLS_CERT_FILE=" + files.certificate,
                                "DIST_TLS_KEY_FILE=" + folder.path("missing.key")},
                               folder.path("stderr"),
                               {"--subcase=calls are received in the order*"}};
  CHECK(without_key.exit_status_within(std::chrono::minutes{1}) == 1);
}

TEST_CASE("a client of the suite" * doctest::skip()) {
  dist::Grpc::Channel channel{{"127.0.0.1", std::getenv("DIST_TEST_PORT")}, {}};
  CHECK_THROWS_AS(channel.call("keep", {}, {std::chrono::seconds{60}, true}), dist::RpcError);
}

TEST_CASE("a server notices a killed client at once, and a stopped one after the silence") {
  using conformance::soon;
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const dist::net::Endpoint endpoint = GrpcKit::endpoint();
    std::mutex mutex;
    std::vector<dist::Grpc::Exchange> kept;
    const std::chrono::minutes long_silence{10};
    const dist::Grpc::Server server{endpoint,
                                    {.silence = signal == SIGKILL ? long_silence : std::chrono::seconds{3}},
                                    {{"keep", [&](dist::Grpc::Exchange& exchange) {
                                        const std::lock_guard lock{mutex};
                                        kept.push_back(exchange.keep());
                                      }}}};
    const support::Spawned client{"a client of the suite", {"DIST_TEST_PORT=" + endpoint.port}};
    REQUIRE(soon([&] {
      const std::lock_guard lock{mutex};
      return !kept.empty();
    }));
    CHECK_FALSE(kept[0].cancelled());
    client.signal(signal);
    CHECK(soon([&] { return kept[0].cancelled(); }));
    kept.clear();
  }
}

TEST_CASE("handlers that compute for longer than a silence lose no client, even on all threads") {
  conformance::RpcPair<GrpcKit> pair{"", {.silence = std::chrono::milliseconds{600}}};
  std::vector<dist::Grpc::Call> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(pair.start("compute", "1500"));
  for (const dist::Grpc::Call& call : calls) CHECK_NOTHROW(call.wait());
}

TEST_CASE("a process forked after the start of gRPC gets an error") {
  const dist::net::Endpoint endpoint = GrpcKit::endpoint();
  dist::Grpc::Server server{endpoint, {}, conformance::rpc_methods<CertifiedGrpc>()};
  dist::Grpc::Channel channel{endpoint, {}};
  channel.call("echo", {}, {});
  support::Processes forked(1, [&](std::size_t) {
    const std::string expected =
        "This process was forked after gRPC had started (the threads of gRPC are in its parent, and its locks may be "
        "held for ever). Fork before the first server or channel is made, or start the process with exec.";
    const auto refused = [&](auto fn) { return support::what_throws<dist::InvalidArgument>(fn) == expected; };
    return refused([&] { channel.call("echo", {}, {}); }) && refused([&] { static_cast<void>(channel.state()); }) &&
                   refused([&] {
                     dist::Grpc::Channel{endpoint, {}};
                   }) &&
                   refused([&] {
                     dist::Grpc::Server{GrpcKit::endpoint(), {}, {}};
                   })
               ? 0
               : 1;
  });
  CHECK(forked.wait() == std::vector<int>{0});
  CHECK_NOTHROW(channel.call("echo", {}, {}));
}
