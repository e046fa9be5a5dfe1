#include <dist/rpc/grpc/server.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dist/rpc/grpc/channel.hpp>

#include <doctest/doctest.h>

#include "net/ports.hpp"
#include "rpc/grpc/raw_call.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/what_throws.hpp"

namespace {

namespace rpc = dist::rpc;
namespace net = dist::net;
using namespace std::chrono_literals;
using dist::grpc::Channel;
using dist::grpc::Exchange;
using dist::grpc::Server;
using dist_test::raw_call;
using Bytes = std::vector<std::byte>;

std::vector<rpc::Method<Exchange>> echo() {
  return {{"echo", [](Exchange& exchange) { exchange.reply(rpc::joined(exchange.pieces())); }}};
}
Bytes bytes_of(std::string_view said) {
  const rpc::Chunk piece = std::as_bytes(std::span{said});
  return {piece.begin(), piece.end()};
}
Bytes together(Bytes first, std::string_view second) {
  const Bytes more = bytes_of(second);
  first.insert(first.end(), more.begin(), more.end());
  return first;
}
/// Describes an answer: its failure and the reason, or its bytes.
std::string said(const dist_test::RawAnswer& answer) {
  if (answer.status != GRPC_STATUS_OK) return dist::concat("status ", static_cast<int>(answer.status));
  std::size_t used = 0;
  const std::optional<net::Frame> frame = net::parse_frame(answer.bytes, rpc::longest_head, used);
  if (!frame) return "no head";
  const rpc::ReplyHead head = rpc::ReplyHead::from(*frame);
  if (head.failure) return dist::concat(rpc::to_string_view(head.failure->failure), ": ", head.failure->why);
  return {reinterpret_cast<const char*>(answer.bytes.data()) + used, answer.bytes.size() - used};
}
dist::io::Descriptor connected(const net::Endpoint& to) {
  const net::SocketAddress address = net::resolve(to).addresses.front();
  dist::io::Descriptor descriptor{socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (connect(descriptor.get(), address.get(), address.size) != 0) descriptor.reset();
  return descriptor;
}

}  // namespace

TEST_CASE("a server listens at its own address only, and rejects one for all interfaces") {
  const net::Endpoint own = dist_test::free_endpoints(1).front();
  const Server server{own, {}, echo()};
  CHECK(connected(own));
  CHECK_FALSE(connected({"127.0.0.2", own.port}));
  CHECK(support::what_throws<dist::RendezvousError>([&] {
          Server{{"0.0.0.0", own.port}, {}, echo()};
        }).find("stands for all interfaces") != std::string::npos);
  CHECK(support::what_throws<dist::RendezvousError>([&] {
          Server{own, {.peers_elsewhere = true}, echo()};
        }).find("is reachable only from this machine") != std::string::npos);
  CHECK(support::what_throws<dist::RendezvousError>([&] {
          Server{own, {.port_in_use = 10ms}, echo()};
        }).find("ss -ltnp shows it") != std::string::npos);
}

TEST_CASE("the number of server threads is independent of the clients, and 0 after the server") {
  const net::Endpoint own = dist_test::free_endpoints(1).front();
  for (const std::size_t threads : {1U, 3U}) {
    const Server server{own, {.threads = threads}, echo()};
    std::vector<std::unique_ptr<Channel>> channels;
    for (int i = 0; i < 16; ++i) {
      channels.push_back(std::make_unique<Channel>(own, rpc::ChannelOptions{}));
      channels.back()->call("echo", {}, {10s, true});
    }
    CHECK(dist_test::threads_named("dist rpc server") == threads + 1);
    CHECK(dist_test::threads_named("dist rpc client") == 1);
  }
  CHECK(dist_test::threads_named("dist rpc server") == 0);
  CHECK(dist_test::threads_named("dist rpc client") == 0);
}

TEST_CASE("at most as many handlers run as there are threads for them, and others wait") {
  const net::Endpoint own = dist_test::free_endpoints(1).front();
  std::atomic<int> running{0}, most{0};
  const Server server{own, {.threads = 2}, {{"compute", [&](Exchange& exchange) {
                                               most = std::max<int>(most, ++running);
                                               std::this_thread::sleep_for(50ms);
                                               --running;
                                               exchange.reply({});
                                             }}}};
  Channel channel{own, {}};
  std::vector<dist::grpc::Call> calls;
  for (int i = 0; i < 9; ++i) calls.push_back(channel.start("compute", {}, {20s, true}));
  for (const dist::grpc::Call& call : calls) CHECK_NOTHROW(call.wait());
  CHECK(most == 2);
}

TEST_CASE("a stopping server does not handle queued requests") {
  const net::Endpoint own = dist_test::free_endpoints(1).front();
  std::atomic<int> handled{0};
  Server server{own, {.threads = 1}, {{"compute", [&](Exchange& exchange) {
                                         ++handled;
                                         for (int i = 0; i < 2000 && !exchange.cancelled(); ++i)
                                           std::this_thread::sleep_for(5ms);
                                         std::this_thread::sleep_for(200ms);
                                       }}}};
  Channel channel{own, {}};
  std::vector<dist::grpc::Call> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(channel.start("compute", {}, {60s, true}));
  for (int i = 0; i < 2000 && handled == 0; ++i) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(200ms);
  server.stop();
  CHECK(handled >= 1);
  CHECK(handled < 10);
  for (const dist::grpc::Call& call : calls) CHECK_THROWS_AS(call.wait(), dist::RpcError);
}

TEST_CASE("calls proceed with several waiting callers, with one and with none") {
  const net::Endpoint own = dist_test::free_endpoints(1).front();
  std::vector<Exchange> kept;
  auto methods = echo();
  methods.push_back({"keep", [&](Exchange& exchange) { kept.push_back(exchange.keep()); }});
  std::optional<Server> server;
  server.emplace(own, rpc::ServerOptions{}, std::move(methods));
  Channel channel{own, {}};
  dist::grpc::Call lifeline = channel.start("keep", {}, {60s, true});
  std::atomic<int> answered{0};
  const auto calls = [&](int count) {
    for (int i = 0; i < count; ++i) answered += channel.call("echo", {}, {20s, true}).pieces().empty() ? 1 : 0;
  };
  const auto start = std::chrono::steady_clock::now();
  calls(200);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(calls, 100 * (i + 1));
  for (std::thread& thread : threads) thread.join();
  calls(200);
  CHECK(answered == 1400);
  for (int i = 0; i < 50; ++i) {
    const dist::grpc::Call alone = channel.start("echo", {}, {20s, true});
    for (int k = 0; k < 2000 && !alone.is_done(); ++k) std::this_thread::sleep_for(1ms);
    REQUIRE(alone.is_done());
    if (i % 10 == 0) calls(5);
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  MESSAGE("1,475 calls in " << took.count() << " ms");
  CHECK_FALSE(lifeline.is_done());
  server.reset();
  CHECK_THROWS_AS(lifeline.wait(), dist::RpcError);
}

TEST_CASE("the thread of the channels sleeps while a caller waits for long, and then continues") {
  const net::Endpoint own = dist_test::free_endpoints(1).front();
  auto methods = echo();
  methods.push_back({"compute", [&](Exchange& exchange) {
                       std::this_thread::sleep_for(300ms);
                       exchange.reply({});
                     }});
  const Server server{own, {}, std::move(methods)};
  Channel channel{own, {}};
  for (int again = 0; again < 3; ++again) {
    channel.call("echo", {}, {20s, true});
    const std::uint64_t before = dist_test::waits_of_thread("dist rpc client");
    channel.call("compute", {}, {20s, true});
    CHECK(dist_test::waits_of_thread("dist rpc client") - before < 60);
    const dist::grpc::Call alone = channel.start("echo", {}, {20s, true});
    for (int k = 0; k < 2000 && !alone.is_done(); ++k) std::this_thread::sleep_for(1ms);
    CHECK(alone.is_done());
  }
}

TEST_CASE("malformed requests are rejected, and other calls continue") {
  const net::Endpoint own = dist_test::free_endpoints(1).front();
  const Server server{own, {.longest = 1000}, echo()};
  const std::string address = to_string(own);
  const auto head = [](std::uint64_t size) { return rpc::RequestHead{size}.frame(); };
  CHECK(said(raw_call(address, "/dist/echo", {together(head(5), "hello")})) == "hello");
  CHECK(said(raw_call(address, "/dist/echo", {together(head(5), "hel"), bytes_of("lo")}, false)) == "hello");
  CHECK(said(raw_call(address, "/dist/echo", {})) == "refused: the request ended early");
  CHECK(said(raw_call(address, "/dist/echo", {together(head(5), "hell")})) == "refused: the request ended early");
  CHECK(said(raw_call(address, "/dist/echo", {together(head(5), "hello!")})) ==
        "refused: the request is longer than its head declares");
  CHECK(said(raw_call(address, "/dist/echo", {bytes_of("")})) == "refused: the request does not begin with a head");
  CHECK(said(raw_call(address, "/dist/echo", {bytes_of("GET / HTTP/1.1")})).find("another protocol") !=
        std::string::npos);
  CHECK(said(raw_call(address, "/dist/echo", {rpc::ReplyHead{5}.frame()})).find("a frame that is not a request") !=
        std::string::npos);
  CHECK(said(raw_call(address, "/dist/echo", {head(1001)})) ==
        "refused: a message of 1001 bytes, but only 1000 are allowed");
  CHECK(said(raw_call(address, "/dist/echo", {head(~std::uint64_t{0})})).find("refused: a message of 1844") == 0);
  CHECK(said(raw_call(address, "/other/echo", {head(0)})) == "unknown method: it has 'echo'");
  CHECK(said(raw_call(address, "/dist/greeting", {head(0)})) == "");
  CHECK(said(raw_call(address, "/dist/greeting", {together(head(1), "x")})) ==
        "refused: a greeting must not have bytes");
  Bytes damaged = head(0);
  for (std::size_t i = 0; i < damaged.size(); i += 5) {
    Bytes copy = damaged;
    copy[i] ^= std::byte{64};
    CHECK(said(raw_call(address, "/dist/echo", {copy})).find("refused: ") == 0);
  }
  // Longer than any message of ours: the core itself rejects it.
  CHECK(said(raw_call(address, "/dist/echo", {Bytes(dist::grpc::longest_message + 20'000)})) == "status 8");
  Channel channel{own, {}};
  CHECK(rpc::size_of(channel.call("echo", {}, {10s, true}).pieces()) == 0);
}

TEST_CASE("a recorded or modified call is rejected") {
  const net::Endpoint own = dist_test::free_endpoints(1).front();
  const Server server{own, {.secret = "secret"}, echo()};
  const std::string address = to_string(own);
  rpc::ClientSession session{"secret"};
  const std::string nonce = said(raw_call(address, "/dist/greeting", {session.greeting().frame()}));
  REQUIRE_FALSE(session.greeted(bytes_of(nonce)));
  const Bytes recorded = together(session.head("echo", 5).frame(), "hello");
  CHECK(said(raw_call(address, "/dist/echo", {recorded})) == "hello");
  CHECK(said(raw_call(address, "/dist/echo", {recorded})) == "refused: the server has already received this call");
  const Bytes other = together(session.head("echo", 5).frame(), "hello");
  CHECK(said(raw_call(address, "/dist/other", {other})) == "refused: the caller does not have the secret of the job");
  CHECK(said(raw_call(address, "/dist/echo", {together(rpc::RequestHead{5}.frame(), "hello")})) ==
        "refused: the caller has no secret, but this job has one");
}

TEST_CASE("connections with invalid or incomplete data do not affect others") {
  const net::Endpoint own = dist_test::free_endpoints(1).front();
  const Server server{own, {}, echo()};
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  std::vector<dist::io::Descriptor> mute;
  std::uint32_t state = 1;
  for (int i = 0; i < 40; ++i) {
    std::string junk = i % 2 == 0 ? "" : preface;
    for (int k = 0; k < i * 50; ++k) junk += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
    mute.push_back(connected(own));
    REQUIRE(mute.back());
    static_cast<void>(send(mute.back().get(), junk.data(), junk.size(), MSG_NOSIGNAL));
  }
  Channel channel{own, {}};
  const Bytes hello = bytes_of("hello");
  const rpc::Chunk piece = hello;
  CHECK(rpc::joined(channel.call("echo", {&piece, 1}, {10s, true}).pieces()) == hello);
}
