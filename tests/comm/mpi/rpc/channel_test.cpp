// ranks: 2
// thread levels: multiple
#include <dist/comm/mpi/rpc/channel.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/net/random_number.hpp>

#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::RpcError;
using dist::mpi::endpoint_of_rank;
using dist::mpi::RpcChannel;
using dist::mpi::detail::CallEngine;
using dist::mpi::detail::Listener;
using dist::mpi::detail::Packet;
using dist::mpi::detail::PacketKind;
namespace rpc = dist::rpc;

/// A server by hand, in the engine's thread.
class Answers final : public Listener {
 public:
  using Answer = std::function<void(CallEngine&, std::size_t peer, const Packet&)>;

  Answers(std::uint16_t port, Answer answer) : port_(port), answer_(std::move(answer)) {
    const CallEngine::Visit visit{engine_};
    REQUIRE(engine_.listen(port_, *this));
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers() override {
    const CallEngine::Visit visit{engine_};
    engine_.stop_listening(port_);
  }
  void accept(std::size_t peer, Packet packet) override { answer_(engine_, peer, packet); }

 private:
  CallEngine& engine_ = CallEngine::of_process();
  const std::uint16_t port_;
  const Answer answer_;
};

std::size_t own_rank() { return CallEngine::of_process().peers().rank(); }

/// How a call fails to which this process answers so.
RpcError error_of(const Answers::Answer& answer, rpc::ChannelOptions options = {}) {
  const Answers answers{20, answer};
  RpcChannel channel{endpoint_of_rank(own_rank(), 20), std::move(options)};
  try {
    channel.call("method", {}, {20s, false});
  } catch (const RpcError& error) {
    return error;
  }
  FAIL("the call has a reply");
  std::abort();
}
Answers::Answer reply(rpc::ReplyHead head, std::string content = "") {
  return [head = std::move(head), content = std::move(content)](CallEngine& engine, std::size_t peer,
                                                                const Packet& packet) {
    const rpc::Piece piece = std::as_bytes(std::span{content});
    engine.send(peer, {.kind = PacketKind::reply, .call = packet.call, .head = head.frame()}, {&piece, 1});
  };
}

}  // namespace

TEST_CASE("a channel knows what its calls have seen, in this process and in another one") {
  const std::size_t rank = own_rank();
  for (const std::size_t peer : {rank, 1 - rank}) {
    RpcChannel channel{endpoint_of_rank(peer, 21), {}};
    CHECK(channel.state() == rpc::State::idle);
    CHECK(support::what_throws<RpcError>([&] {
            channel.call("method", {}, {});
          }).find("no server listens there, in rank ") != std::string::npos);
    CHECK(channel.state() == rpc::State::lost);
    CHECK(support::what_throws<RpcError>([&] {
            channel.call("method", {}, {50ms, true});
          }).find("nobody has answered") != std::string::npos);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const Answers answers{21, reply({5, 77}, "abcde")};
  MPI_Barrier(MPI_COMM_WORLD);
  for (const std::size_t peer : {rank, 1 - rank}) {
    RpcChannel channel{endpoint_of_rank(peer, 21), {}};
    const auto answer = channel.call("method", {}, {});
    CHECK(rpc::size_of(answer.pieces()) == 5);
    CHECK(answer.incarnation() == 77);
    CHECK(channel.state() == rpc::State::ready);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("addresses that are no ranks, and methods that are no names, are refused") {
  CHECK_THROWS_AS((RpcChannel{{"rank-2", "1"}, {}}), dist::InvalidArgument);
  CHECK_THROWS_AS((RpcChannel{{"east", "2222"}, {}}), dist::InvalidArgument);
  CHECK_THROWS_AS((RpcChannel{{"rank-0", "70000"}, {}}), dist::InvalidArgument);
  RpcChannel channel{endpoint_of_rank(0), {}};
  auto call = channel.start(std::string(2000, 'x'), {}, {});
  CHECK(call.is_done());
  CHECK(support::what_throws<RpcError>([&] { call.wait(); }).find("the name of a method has 2000 bytes") !=
        std::string::npos);
}

TEST_CASE("options of TLS are refused, because MPI does not encrypt") {
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          RpcChannel{endpoint_of_rank(own_rank(), 30), {.tls = {"ca.pem", "task.pem", "task.key"}}};
        }).starts_with("Calls over MPI cannot be encrypted (the options name task.pem for TLS)"));
}

TEST_CASE("a server that answers what is no reply is refused") {
  using rpc::Failure;
  const auto no_head = error_of([](CallEngine& engine, std::size_t peer, const Packet& packet) {
    engine.send(peer, {.kind = PacketKind::reply, .call = packet.call, .head = std::vector<std::byte>(40)});
  });
  CHECK(no_head.failure() == Failure::refused);
  const auto request = error_of([](CallEngine& engine, std::size_t peer, const Packet& packet) {
    engine.send(peer, {.kind = PacketKind::reply, .call = packet.call, .head = rpc::RequestHead{}.frame()});
  });
  CHECK(request.failure() == Failure::refused);
  CHECK(error_of(reply({4, 0}, "abcde")).why() == "the reply is longer than it says");
  CHECK(error_of(reply({6, 0}, "abcde")).why() == "the reply is shorter than it says");
  CHECK(error_of(reply({101, 0}), {.longest = 100}).why() == "a message of 101 bytes, where 100 are allowed");
  // The first of several answers counts.
  const auto twice = error_of([](CallEngine& engine, std::size_t peer, const Packet& packet) {
    reply({0, 0, rpc::Outcome{Failure::handler, "first", "T"}})(engine, peer, packet);
    reply({0, 0})(engine, peer, packet);
  });
  CHECK(twice.why() == "first");
}

TEST_CASE("a server that gives a long reply up is lost, and one that never sends it runs into the deadline") {
  const std::uint64_t size = 100'000;
  const auto given_up = error_of([&](CallEngine& engine, std::size_t peer, const Packet& packet) {
    reply({size, 0})(engine, peer, packet);
    engine.send(peer, {.kind = PacketKind::abandon, .call = packet.call, .of_reply = true});
  });
  CHECK(dist::rpc::is_lost(given_up));
  CHECK(given_up.why() == "the reply ended early");

  std::uint64_t number = 0;
  const Answers answers{20, [&](CallEngine& engine, std::size_t peer, const Packet& packet) {
                          number = packet.call;
                          reply({size, 0})(engine, peer, packet);
                        }};
  RpcChannel channel{endpoint_of_rank(own_rank(), 20), {}};
  CHECK(support::what_throws<RpcError>([&] {
          channel.call("method", {}, {100ms, false});
        }).find("in time") != std::string::npos);
  CallEngine& engine = CallEngine::of_process();
  const CallEngine::Visit visit{engine};
  engine.send(engine.peers().rank(), {.kind = PacketKind::abandon, .call = number, .of_reply = true});
}

TEST_CASE("a call that no server takes gives its memory back") {
  RpcChannel channel{endpoint_of_rank(1 - own_rank(), 22), {}};
  const std::vector<std::byte> memory(1 << 20);
  const rpc::Piece piece = memory;
  CHECK_THROWS_AS(channel.call("method", {&piece, 1}, {}), RpcError);
  auto waiting = channel.start("method", {&piece, 1}, {60s, true});
  CHECK_FALSE(waiting.is_done());
  waiting.cancel();
  CHECK_THROWS_AS(waiting.wait(), RpcError);
  CHECK(waiting.is_done());
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a server that was ready and stops is lost, though there is no call") {
  // The last case, because a process that was silent is lost for good.
  const Answers answers{23, reply({0, 77})};
  MPI_Barrier(MPI_COMM_WORLD);
  if (own_rank() == 0) {
    RpcChannel channel{endpoint_of_rank(1, 23), {.silence = 300ms}};
    channel.call("method", {}, {});
    CHECK(channel.state() == rpc::State::ready);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto end = CallEngine::Clock::now() + 20s;
    while (channel.state() == rpc::State::ready && CallEngine::Clock::now() < end) std::this_thread::sleep_for(1ms);
    CHECK(channel.state() == rpc::State::lost);
    CHECK(support::what_throws<RpcError>([&] {
            channel.call("method", {}, {});
          }).find(": it has been silent for 0.3 s") != std::string::npos);
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    const CallEngine::Visit visit{CallEngine::of_process()};  // so nothing here answers
    MPI_Barrier(MPI_COMM_WORLD);
  }
}
