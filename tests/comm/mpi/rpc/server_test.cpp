// ranks: 2
// thread levels: multiple
#include <dist/comm/mpi/rpc/server.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/comm/mpi/rpc/channel.hpp>

#include "comm/mpi/rpc/quiet_call.hpp"
#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::mpi::endpoint_of_rank;
using dist::mpi::RpcChannel;
using dist::mpi::RpcExchange;
using dist::mpi::RpcServer;
using dist::mpi::detail::CallEngine;
using dist::mpi::detail::longest_content;
using dist::mpi::detail::Packet;
using dist::mpi::detail::PacketKind;
namespace rpc = dist::rpc;

std::size_t own_rank() { return CallEngine::of_process().peers().rank(); }

/// A client by hand.
struct Client final : dist_test::QuietCall {
  explicit Client(std::size_t to) : QuietCall(to, 30s) {}
  void take(Packet packet) override { reply = packet.message_head<rpc::ReplyHead>(); }

  std::optional<rpc::ReplyHead> reply;
};

/// Why a server of this process refuses a request like this.
std::string refusal(Packet request, std::size_t content) {
  CallEngine& engine = CallEngine::of_process();
  const auto client = std::make_shared<Client>(own_rank());
  const std::vector<std::byte> bytes(content);
  const rpc::Piece piece = bytes;
  dist::detail::ConditionVariable nobody_notifies;
  CallEngine::Visit visit{engine};
  request.kind = PacketKind::request;
  request.call = engine.add_client_call(client);
  request.port = 30;
  engine.send(own_rank(), request, {&piece, 1});
  engine.wait(visit, nobody_notifies, CallEngine::Clock::now() + 10s, [&] { return client->reply.has_value(); });
  engine.remove_client_call(request.call);
  REQUIRE(client->reply);
  REQUIRE(client->reply->failure);
  CHECK(client->reply->failure->failure == rpc::Failure::refused);
  return client->reply->failure->why;
}

}  // namespace

TEST_CASE("a server listens at its own rank only") {
  const std::size_t rank = own_rank();
  const auto make = [](const dist::net::Endpoint& own) { RpcServer{own, {}, {}}; };
  CHECK(support::what_throws<dist::RendezvousError>([&] { make(endpoint_of_rank(1 - rank, 5)); }) ==
        dist::text("This task cannot listen at its own address rank-", 1 - rank, ":5 (this process is rank ", rank,
                   " of MPI). Let the launcher number the tasks, as dist::MpiRolesResolver does."));
  CHECK_THROWS_AS(make({"east", "2222"}), dist::InvalidArgument);
  CHECK_THROWS_AS(make(endpoint_of_rank(rank, 0)), dist::InvalidArgument);
  rpc::ServerOptions encrypted;
  encrypted.tls = {"ca.pem", "task.pem", "task.key"};
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          RpcServer{endpoint_of_rank(rank, 5), encrypted, {}};
        }).starts_with("Calls over MPI cannot be encrypted"));
}

TEST_CASE("requests that are malformed or too long are refused, and no handler sees them") {
  std::atomic<int> handled{0};
  const RpcServer server{
      endpoint_of_rank(own_rank(), 30), {.longest = 100'000}, {{"method", [&](RpcExchange& exchange) {
                                                                  ++handled;
                                                                  exchange.reply({});
                                                                }}}};
  CHECK(refusal({.method = "method"}, 0).find("does not begin with a head") != std::string::npos);
  CHECK(refusal({.method = "method", .head = std::vector<std::byte>(100)}, 0).find("another protocol") !=
        std::string::npos);
  CHECK(refusal({.method = "method", .head = rpc::ReplyHead{}.frame()}, 0).find("what is no request") !=
        std::string::npos);
  const std::string sizes = "the request has another size than it says";
  const auto head = [](std::uint64_t size) { return rpc::RequestHead{.size = size}.frame(); };
  CHECK(refusal({.method = "method", .head = head(7)}, 6) == sizes);
  CHECK(refusal({.method = "method", .head = head(7)}, 8) == sizes);
  CHECK(refusal({.method = "method", .head = head(longest_content + 1)}, 8) == sizes);
  CHECK(refusal({.method = "method", .head = head(100'001)}, 0) ==
        "a message of 100001 bytes, where 100000 are allowed");
  CHECK(refusal({.method = std::string{rpc::greeting_method}, .head = head(1)}, 1) == "a greeting has no bytes");
  CHECK(handled == 0);
}

TEST_CASE(
    "as many handlers run at the same time as the server has threads, and calls do not wait for those of others") {
  std::atomic<int> running{0}, most{0};
  const auto handler = [&](RpcExchange& exchange) {
    const int now = ++running;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(30ms);
    --running;
    exchange.reply({});
  };
  const RpcServer server{endpoint_of_rank(own_rank(), 31), {.threads = 3}, {{"compute", handler}}};
  RpcChannel channel{endpoint_of_rank(own_rank(), 31), {}};
  std::vector<dist::mpi::RpcCall> calls;
  for (int i = 0; i < 9; ++i) calls.push_back(channel.start("compute", {}, {}));
  for (const auto& call : calls) call.wait();
  CHECK(most == 3);
}

TEST_CASE("a server that stops while a long reply is on its way ends it, and gives the memory back before it returns") {
  const std::size_t rank = own_rank();
  const std::vector<std::byte> memory(64 << 20);
  const rpc::Piece piece = memory;
  std::atomic<int> released{0}, answered{0};
  const auto lend = [&](RpcExchange& exchange) {
    exchange.reply({&piece, 1}, [&released] { ++released; });
    ++answered;
  };
  std::optional<RpcServer> server;
  server.emplace(endpoint_of_rank(rank, 32), rpc::ServerOptions{},
                 dist::mpi::detail::ServerHost::Methods{{"lend", lend}});
  RpcChannel channel{endpoint_of_rank(1 - rank, 32), {}};
  auto call = channel.start("lend", {}, {30s, true});
  while (answered == 0) std::this_thread::sleep_for(1ms);
  server->stop();
  CHECK(released == 1);
  try {
    call.wait();  // the whole was faster
  } catch (const dist::RpcError& error) {
    CHECK(rpc::is_lost(error));
    CHECK(error.why() == "the reply ended early");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}
