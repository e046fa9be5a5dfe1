#include <dist/rpc/grpc/api.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dist/rpc/grpc/channel.hpp>
#include <dist/rpc/grpc/server.hpp>

#include "net/ports.hpp"
#include "support/certificates.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/what_throws.hpp"

namespace {

namespace rpc = dist::rpc;
using namespace std::chrono_literals;
using dist::grpc::Channel;
using dist::grpc::Exchange;
using dist::grpc::Server;
using dist::net::TlsFiles;
using Clock = std::chrono::steady_clock;

const support::TemporaryFolder folder;
const support::Authority authority{folder, "authority"}, foreign{folder, "foreign"};

/// A server with an echo method.
struct EchoServer {
  explicit EchoServer(const TlsFiles& tls)
      : server(endpoint, options_with(tls),
               {{"echo", [](Exchange& exchange) { exchange.reply(rpc::joined(exchange.pieces())); }}}) {}
  static rpc::ServerOptions options_with(const TlsFiles& tls) {
    rpc::ServerOptions options;
    options.tls = tls;
    return options;
  }

  const dist::net::Endpoint endpoint = dist_test::free_endpoints(1).front();
  Server server;
};

std::string echo(Channel& channel, const std::string& said, const rpc::CallOptions& options = {10s, true}) {
  const rpc::Chunk piece = std::as_bytes(std::span{said});
  const std::vector<std::byte> bytes = rpc::joined(channel.call("echo", {&piece, 1}, options).pieces());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
/// Returns the failure of a call with these certificates, which must be reported within the bound.
dist::RpcError failure_of(const EchoServer& server, const TlsFiles& tls, const rpc::CallOptions& options = {60s, true},
                          Clock::duration bound = 50s) {
  Channel channel{server.endpoint, {.tls = tls}};
  const auto begin = Clock::now();
  try {
    echo(channel, "hello", options);
  } catch (const dist::RpcError& error) {
    MESSAGE(std::chrono::duration<double, std::milli>(Clock::now() - begin).count()
            << " ms: " << std::string{error.what()});
    CHECK(Clock::now() - begin < bound);
    return error;
  }
  FAIL("the call has a reply");
  std::abort();
}
bool says(const dist::RpcError& error, const std::string& part) { return error.why().find(part) != std::string::npos; }

}  // namespace

TEST_CASE("tasks with certificates of one authority call each other, also when a call waits for its server") {
  const EchoServer server{authority.task("server")};
  Channel channel{server.endpoint, {.tls = authority.task("client")}};
  CHECK(echo(channel, "hello") == "hello");
  const std::string large(20 << 20, 'x');
  CHECK(echo(channel, large) == large);
  CHECK(channel.state() == rpc::State::ready);

  const dist::net::Endpoint endpoint = dist_test::free_endpoints(1).front();
  Channel waits{endpoint, {.tls = authority.task("client"), .reconnect = 20ms}};
  auto call = waits.start("echo", {}, {20s, true});
  const Server other{endpoint,
                     EchoServer::options_with(authority.task("server")),
                     {{"echo", [](Exchange& exchange) { exchange.reply({}); }}}};
  CHECK_NOTHROW(call.wait());
}

TEST_CASE(
    "a server of another authority, for another host or without TLS is rejected at once, also by a call that waits") {
  const TlsFiles own = authority.task("client");
  const dist::RpcError strange = failure_of(EchoServer{foreign.task("server")}, own);
  CHECK(strange.failure() == rpc::Failure::refused);
  CHECK(says(strange, "its certificate is not signed by an authority in " + own.authorities + ", or is out of date"));
  CHECK(std::string{strange.what()}.find("certificates of the same authorities") != std::string::npos);

  const EchoServer named{authority.task("named", {.hosts = "DNS:job.example"})};
  const dist::RpcError other = failure_of(named, own);
  CHECK(other.failure() == rpc::Failure::refused);
  CHECK(says(other, "its certificate is for another host"));
  TlsFiles with_name = own;
  with_name.server_name = "job.example";
  Channel channel{named.endpoint, {.tls = with_name}};
  CHECK(echo(channel, "hello") == "hello");

  const dist::RpcError plain = failure_of(EchoServer{TlsFiles{}}, own);
  CHECK(plain.failure() == rpc::Failure::refused);
  CHECK(says(plain, "it does not use TLS"));
}

TEST_CASE("a server with certificates rejects clients without a trusted certificate") {
  const EchoServer server{authority.task("server")};
  // Without a message from the server, it might be a server that is starting.
  const dist::RpcError plain = failure_of(server, {}, {60s, false});
  CHECK(rpc::is_lost(plain));
  CHECK(says(plain, "if the server requires TLS, this task needs certificates (DIST_TLS_CERT_FILE)"));
  const dist::RpcError waiting = failure_of(server, {}, {500ms, true});
  CHECK(waiting.failure() == rpc::Failure::deadline);
  CHECK(says(waiting, "this task needs certificates"));

  TlsFiles stranger = foreign.task("stranger");
  stranger.authorities = folder.write("both.pem", folder.read("authority.pem") + folder.read("foreign.pem"));
  const dist::RpcError refused = failure_of(server, stranger, {60s, false});
  CHECK(rpc::is_lost(refused));
  CHECK(says(refused, "the server may have rejected the certificate in " + stranger.certificate));
}

TEST_CASE("a task whose own certificates are unusable fails at its start, and names the file") {
  TlsFiles files = authority.task("old", {.from = -7200, .to = -3600});
  const dist::net::Endpoint endpoint = dist_test::free_endpoints(1).front();
  const auto said = [&](auto begin) { return support::what_throws<dist::FileError>(begin); };
  const auto server = [&] { Server{endpoint, EchoServer::options_with(files), {}}; };
  const auto client = [&] { Channel{endpoint, {.tls = files}}; };
  CHECK(said(server).find(files.certificate + "' holds a certificate that all tasks of the job reject") !=
        std::string::npos);
  CHECK(said(client) == said(server));
  files = authority.task("calls", {.usage = "clientAuth"});
  CHECK(said(server).find("unsuitable certificate purpose") != std::string::npos);
  CHECK(said(client) == "nothing was thrown");
  files.key = folder.path("missing.key");
  CHECK(said(server).find(files.key) != std::string::npos);
  files.key.clear();
  CHECK(support::what_throws<dist::InvalidArgument>(client).find("DIST_TLS_KEY_FILE") != std::string::npos);
  const Server begins{endpoint, {}, {}};  // the address is free
}

TEST_CASE("the core's text for a connection is kept if it is not about trust") {
  const TlsFiles files{"ca.pem", "task.pem", "task.key"};
  using dist::grpc::distrust;
  using dist::grpc::failed_connection;
  const std::string refused = "failed to connect to all addresses; last error: UNKNOWN: Connection refused";
  CHECK_FALSE(distrust(refused, files));
  CHECK(failed_connection(refused, files) == refused);
  CHECK(failed_connection("Socket closed", files) == "Socket closed");  // for an established connection
  CHECK(distrust("Ssl handshake failed: no shared cipher", files) ==
        "the TLS handshake with it failed; Ssl handshake failed: no shared cipher");
}
