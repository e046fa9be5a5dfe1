// The suite of RPC transports (dist/rpc/rpc.hpp). A transport joins in its own test file with a kit and one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(rpc_transports, TheKit);
// A kit has
// - `Transport`;
// - `endpoint()`: an unused endpoint for a Peer; `own_endpoint()`: one for a server of this process;
// - `Peer{endpoint, secret}`: a server with `conformance::rpc_methods<Transport>()`, in a separate process if the
//   transport supports it; `kill()` terminates it abruptly; if `pauses`, `pause()` and `resume()` stop and continue it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dist/net/error.hpp>
#include <dist/rpc/rpc.hpp>

#include <doctest/doctest.h>

#include "support/sanitizers.hpp"
#include "support/soon.hpp"

namespace conformance {

using namespace std::chrono_literals;
namespace rpc = dist::rpc;

/// Sanitizers slow peers down, so they are silent for longer.
#ifdef DIST_TEST_SANITIZER
inline constexpr auto rpc_silence = 30s;
#else
inline constexpr auto rpc_silence = 3s;
#endif

/// Returns content that both sides can generate: it repeats after an odd number of bytes.
inline const std::vector<std::byte>& rpc_block() {
  static const std::vector<std::byte> block = [] {
    std::vector<std::byte> bytes(1'000'003);
    std::uint32_t state = 12345;
    for (std::byte& byte : bytes) {
      state = state * 1664525u + 1013904223u;
      byte = static_cast<std::byte>(state >> 24);
    }
    return bytes;
  }();
  return block;
}
/// Returns `size` bytes of the repeated block, without copies.
inline std::vector<rpc::Chunk> repeated_block(std::uint64_t size) {
  std::vector<rpc::Chunk> pieces;
  for (; size > rpc_block().size(); size -= rpc_block().size()) pieces.emplace_back(rpc_block());
  pieces.push_back(rpc::Chunk{rpc_block()}.first(size));
  return pieces;
}
inline bool repeats_block(rpc::ChunkSpan pieces) {
  std::size_t at = 0;
  for (rpc::Chunk piece : pieces)
    while (!piece.empty()) {
      const std::size_t count = std::min(piece.size(), rpc_block().size() - at);
      if (std::memcmp(piece.data(), rpc_block().data() + at, count) != 0) return false;
      piece = piece.subspan(count);
      at = (at + count) % rpc_block().size();
    }
  return true;
}

inline std::vector<std::byte> rpc_bytes(std::string_view said) {
  const rpc::Chunk bytes = std::as_bytes(std::span{said});
  return {bytes.begin(), bytes.end()};
}
inline std::vector<std::byte> rpc_number(std::uint64_t number) { return rpc_bytes(std::to_string(number)); }
inline std::string rpc_text(rpc::ChunkSpan pieces) {
  const std::vector<std::byte> bytes = rpc::joined(pieces);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The exchanges that the server stores, and its observations.
template <class Transport>
struct RpcServerState {
  std::mutex mutex;
  std::vector<typename Transport::Exchange> kept;
  std::string seen;
  static RpcServerState& get() {
    static RpcServerState state;
    return state;
  }
};

template <class Transport>
std::vector<rpc::Method<typename Transport::Exchange>> rpc_methods() {
  using Exchange = typename Transport::Exchange;
  using State = RpcServerState<Transport>;
  return {
      {"echo", [](Exchange& exchange) { exchange.reply(rpc::joined(exchange.pieces())); }},
      {"matches",
       [](Exchange& exchange) {
         exchange.reply(repeats_block(exchange.pieces()) ? rpc_number(rpc::size_of(exchange.pieces()))
                                                         : rpc_bytes("no"));
       }},
      {"repeat",
       [](Exchange& exchange) {
         exchange.reply(repeated_block(std::stoull(rpc_text(exchange.pieces()))), dist::detail::UniqueFunction<void>{});
       }},
      {"note",
       [](Exchange& exchange) {
         const std::lock_guard lock{State::get().mutex};
         State::get().seen += rpc_text(exchange.pieces());
         exchange.reply({});
       }},
      {"noted",
       [](Exchange& exchange) {
         const std::lock_guard lock{State::get().mutex};
         exchange.reply(rpc_bytes(std::exchange(State::get().seen, {})));
       }},
      {"keep",
       [](Exchange& exchange) {
         const std::lock_guard lock{State::get().mutex};
         State::get().kept.push_back(exchange.keep());
       }},
      {"kept",
       [](Exchange& exchange) {
         const std::lock_guard lock{State::get().mutex};
         exchange.reply(rpc_number(State::get().kept.size()));
       }},
      {"cancelled",
       [](Exchange& exchange) {
         const std::lock_guard lock{State::get().mutex};
         exchange.reply(rpc_number(
             static_cast<std::uint64_t>(std::count_if(State::get().kept.begin(), State::get().kept.end(),
                                                      [](const Exchange& kept) { return kept.cancelled(); }))));
       }},
      {"answer all",  // the last one first, each with its own request
       [](Exchange& exchange) {
         std::vector<Exchange> kept;
         {
           const std::lock_guard lock{State::get().mutex};
           kept = std::exchange(State::get().kept, {});
         }
         while (!kept.empty()) {
           kept.back().reply(rpc::joined(kept.back().pieces()));
           kept.pop_back();
         }
         exchange.reply({});
       }},
      {"throw", [](Exchange& exchange) { throw std::out_of_range(rpc_text(exchange.pieces())); }},
      {"throw 7", [](Exchange&) { throw 7; }},
      {"fail", [](Exchange& exchange) { exchange.fail(rpc_text(exchange.pieces())); }},
      {"forget", [](Exchange&) {}},
      {"compute",  // for the requested number of milliseconds
       [](Exchange& exchange) {
         std::this_thread::sleep_for(std::chrono::milliseconds{std::stoi(rpc_text(exchange.pieces()))});
         exchange.reply({});
       }},
  };
}

/// Returns the error of a call that has no reply.
template <class Fn>
dist::RpcError rpc_error(Fn&& fn) {
  try {
    fn();
  } catch (const dist::RpcError& error) {
    return error;
  }
  FAIL("the call has a reply");
  std::abort();
}
template <class Fn>
std::chrono::milliseconds rpc_time(Fn&& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}
using support::soon;

/// A server, and calls to it.
template <class Kit>
struct RpcPair {
  using Transport = typename Kit::Transport;
  using Channel = typename Transport::Channel;

  explicit RpcPair(std::string its = "", rpc::ChannelOptions channel_options = {.silence = rpc_silence})
      : secret(std::move(its)), options(std::move(channel_options)) {
    options.secret = secret;
    peer.emplace(endpoint, secret);
    channel.emplace(endpoint, options);
    forget_kept();
  }
  ~RpcPair() {
    channel.reset();
    peer.reset();
    RpcServerState<Transport>::get().kept.clear();
  }
  /// Options for calls of at most a minute.
  static rpc::CallOptions patient() { return {60s, true}; }

  std::string call(const char* method, std::string_view request = "", rpc::CallOptions how = patient()) {
    return call(*channel, method, request, how);
  }
  static std::string call(Channel& to, const char* method, std::string_view request = "",
                          rpc::CallOptions how = patient()) {
    const rpc::Chunk piece = std::as_bytes(std::span{request});
    return rpc_text(to.call(method, {&piece, 1}, how).pieces());
  }
  /// The request must outlive the call.
  auto start(const char* method, std::string_view request = "", rpc::CallOptions how = patient()) {
    const rpc::Chunk piece = std::as_bytes(std::span{request});
    return channel->start(method, {&piece, 1}, how);
  }
  void forget_kept() { call("answer all"); }

  std::string secret;
  rpc::ChannelOptions options;
  dist::net::Endpoint endpoint = Kit::endpoint();
  std::optional<typename Kit::Peer> peer;
  std::optional<Channel> channel;
};

template <class Kit>
void echoes_of_all_sizes(std::size_t clients) {
  RpcPair<Kit> pair;
  std::vector<std::uint64_t> sizes{0, 1, 23, 64, 1000, 16384, 16385, 1 << 20, (16 << 20) + 1};
#ifndef DIST_TEST_SANITIZER
  sizes.insert(sizes.end(), {(16 << 20) - 1, 16 << 20, 64 << 20});
#endif
  std::vector<std::string> wrong(clients);
  std::vector<std::thread> threads;
  for (std::size_t client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      typename Kit::Transport::Channel channel{pair.endpoint, pair.options};
      for (const std::uint64_t size : sizes) try {
          // The large ones are sent by one client at a time.
          if (size > (1 << 20) && clients > 1 && client != size % clients) continue;
          std::vector<rpc::Chunk> request = repeated_block(size);
          request.insert(request.begin() + 1, rpc::Chunk{});
          const auto reply = channel.call("echo", request, pair.patient());
          if (rpc::size_of(reply.pieces()) != size || !repeats_block(reply.pieces()))
            wrong[client] += dist::concat(size, " bytes; ");
        } catch (const std::exception& error) {
          wrong[client] += dist::concat(size, " bytes: ", error.what(), "; ");
        }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& said : wrong) CHECK(said == "");
}

/// Sends `size` bytes to the server, and back, with little memory.
template <class Kit>
void long_messages(std::uint64_t size) {
  RpcPair<Kit> pair;
  const auto there = rpc_time([&] {
    const auto reply = pair.channel->call("matches", repeated_block(size), {100s, true});
    CHECK(rpc_text(reply.pieces()) == std::to_string(size));
  });
  const auto back = rpc_time([&] {
    const std::vector<std::byte> number = rpc_number(size);
    const rpc::Chunk piece = number;
    const auto reply = pair.channel->call("repeat", {&piece, 1}, {100s, true});
    CHECK(rpc::size_of(reply.pieces()) == size);
    CHECK(repeats_block(reply.pieces()));
  });
  MESSAGE(size << " bytes: there in " << there.count() << " ms, back in " << back.count() << " ms");
}

/// A sink receives the bytes of a reply in order, and `pieces()` has the rest.
template <class Kit>
void sinks() {
  struct Sink final : rpc::ReplySink {
    void take(rpc::Chunk piece) noexcept override { bytes.insert(bytes.end(), piece.begin(), piece.end()); }
    std::vector<std::byte> bytes;
  };
  RpcPair<Kit> pair{"the job"};  // its handshake does not go to the sink
  for (const std::uint64_t size : {0U, 1U, 1000U, 16385U, (5U << 20) + 1U}) {
    Sink sink;
    const std::vector<std::byte> number = rpc_number(size);
    const rpc::Chunk piece = number;
    const auto reply = pair.channel->call("repeat", {&piece, 1}, {60s, true, &sink});
    for (const rpc::Chunk left : reply.pieces()) sink.take(left);
    CHECK(sink.bytes.size() == size);
    const rpc::Chunk all = sink.bytes;
    CHECK(repeats_block({&all, 1}));
  }
  Sink sink;
  CHECK(rpc_error([&] { pair.call("fail", "no such row", {60s, true, &sink}); }).why() == "no such row");
  CHECK(sink.bytes.empty());
}

template <class Kit>
void order() {
  RpcPair<Kit> pair;
  pair.call("noted");
  std::string expected;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    pair.call("note", std::string(1, letter));
    expected += letter;
  }
  CHECK(pair.call("noted") == expected);
}

template <class Kit>
void outstanding() {
  RpcPair<Kit> pair;
  std::vector<std::string> requests;
  for (int i = 0; i < 64; ++i) requests.push_back("request " + std::to_string(i));
  std::vector<typename Kit::Transport::Call> calls;
  for (const std::string& request : requests) calls.push_back(pair.start("keep", request));
  REQUIRE(soon([&] { return pair.call("kept") == "64"; }));
  for (const auto& call : calls) CHECK_FALSE(call.is_done());
  pair.call("answer all");
  for (std::size_t i = 0; i < calls.size(); ++i) CHECK(rpc_text(calls[i].reply().pieces()) == requests[i]);
  CHECK(calls[0].is_done());
  CHECK(rpc_text(calls[0].reply().pieces()) == requests[0]);
}

template <class Kit>
void deadlines() {
  RpcPair<Kit> pair;
  const auto begin = std::chrono::steady_clock::now();
  auto call = pair.start("keep", "abc", {200ms, false});
  for (int again = 0; again < 2; ++again) {
    const dist::RpcError error = rpc_error([&] { call.wait(); });
    CHECK(error.failure() == rpc::Failure::deadline);
    CHECK(error.what() == "Call 'keep' to " + to_string(pair.endpoint) + " received no reply in time (" + error.why() +
                              "). Give the call a longer timeout, or see what keeps the server busy.");
    CHECK(std::chrono::steady_clock::now() - begin >= 150ms);
  }
  CHECK(call.is_done());
  CHECK(soon([&] { return pair.call("cancelled") == "1"; }));
  pair.forget_kept();  // a reply without a caller
  CHECK(rpc_error([&] { call.wait(); }).failure() == rpc::Failure::deadline);
  CHECK(pair.call("echo", "in time", {10s, false}) == "in time");
}

template <class Kit>
void cancellation() {
  RpcPair<Kit> pair;
  auto call = pair.start("keep", "abc");
  REQUIRE(soon([&] { return pair.call("kept") == "1"; }));
  call.cancel();
  const dist::RpcError cancelled = rpc_error([&] { call.wait(); });
  CHECK(cancelled.failure() == rpc::Failure::cancelled);
  CHECK(cancelled.why() == "by the caller");
  CHECK(soon([&] { return pair.call("cancelled") == "1"; }));
  pair.forget_kept();

  auto answered = pair.start("echo", "done");
  answered.wait();
  answered.cancel();
  CHECK(rpc_text(answered.reply().pieces()) == "done");

  // A channel that is destroyed cancels its calls.
  auto orphan = pair.start("keep", "abc");
  REQUIRE(soon([&] { return pair.call("kept") == "1"; }));
  pair.channel.reset();
  CHECK(orphan.is_done());
  const dist::RpcError error = rpc_error([&] { orphan.wait(); });
  CHECK(error.failure() == rpc::Failure::cancelled);
  CHECK(error.why() == "its channel was destroyed");
  pair.channel.emplace(pair.endpoint, pair.options);
  CHECK(soon([&] { return pair.call("cancelled") == "1"; }));
}

template <class Kit>
void failures_of_handlers() {
  RpcPair<Kit> pair;
  const auto error_of = [&](const char* method, std::string_view request = "") {
    return rpc_error([&] { pair.call(method, request); });
  };
  const dist::RpcError thrown = error_of("throw", "UNAVAILABLE: Connection reset by peer");
  CHECK(thrown.failure() == rpc::Failure::handler);
  CHECK_FALSE(rpc::is_lost(thrown));
  CHECK(thrown.thrown() == "std::out_of_range");
  CHECK(thrown.why() == "UNAVAILABLE: Connection reset by peer");
  CHECK(thrown.peer() == to_string(pair.endpoint));
  CHECK(error_of("throw 7").thrown() == "int");
  CHECK(error_of("fail", "no such row").why() == "no such row");
  CHECK(error_of("fail", "no such row").failure() == rpc::Failure::handler);
  CHECK(error_of("forget").why() == "the handler did not reply");
  const dist::RpcError unknown = error_of("nothing");
  CHECK(unknown.failure() == rpc::Failure::unknown_method);
  CHECK(unknown.why().find("it has 'echo', 'matches'") == 0);
  CHECK(pair.call("echo", "alive") == "alive");
}

template <class Kit>
void any_bytes() {
  RpcPair<Kit> pair;
  std::uint32_t state = 1;
  for (std::size_t size = 0; size < 300; ++size) {
    std::string request;
    for (std::size_t i = 0; i < size; ++i) request += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
    REQUIRE(pair.call("echo", request) == request);
    if (size % 50 == 0)
      CHECK(rpc_error([&] { pair.call("repeat", "x" + request); }).thrown() == "std::invalid_argument");
  }
  CHECK(rpc_error([&] { pair.call(std::string(300, '\x01').c_str()); }).failure() != rpc::Failure::deadline);
  CHECK(pair.call("echo", "alive") == "alive");
}

template <class Kit>
void dead_peers() {
  RpcPair<Kit> pair;
  auto call = pair.start("keep", "abc");
  REQUIRE(soon([&] { return pair.call("kept") == "1"; }));
  CHECK(pair.channel->state() == rpc::State::ready);
  std::optional<dist::RpcError> error;
  const auto took = rpc_time([&] {
    pair.peer->kill();
    error = rpc_error([&] { call.wait(); });
  });
  MESSAGE("a peer that is killed during a call is lost after " << took.count() << " ms");
  CHECK(rpc::is_lost(*error));
  CHECK_FALSE(error->was_silent());  // its connection has closed
  CHECK(rpc::is_lost(rpc_error([&] { pair.call("echo", "", {}); })));
  CHECK(soon([&] { return pair.channel->state() == rpc::State::lost; }));
}

template <class Kit>
void restarted_peers() {
  for (const char* const secret : {"", "kestrel 42"}) {
    RpcPair<Kit> pair{secret};
    const auto before = pair.channel->call("echo", {}, pair.patient());
    CHECK(pair.channel->call("echo", {}, pair.patient()).incarnation() == before.incarnation());
    pair.peer->kill();
    REQUIRE(soon([&] { return pair.channel->state() != rpc::State::ready; }));
    std::thread restart([&] {
      std::this_thread::sleep_for(200ms);
      pair.peer.emplace(pair.endpoint, pair.secret);
    });
    auto call = pair.channel->start("echo", {}, pair.patient());
    const auto took = rpc_time([&] { CHECK_NOTHROW(call.wait()); });
    restart.join();
    MESSAGE("a peer that is started again after 200 ms answers after " << took.count() << " ms");
    CHECK(call.reply().incarnation() != before.incarnation());
  }
}

/// A peer that was away for long is found by the clients' own attempts, at their interval.
template <class Kit>
void peers_that_were_away() {
  const rpc::ChannelOptions options{.reconnect = 50ms};
  RpcPair<Kit> pair{"", options};
  pair.peer->kill();
  for (int i = 0; i < 12; ++i) {
    CHECK(rpc::is_lost(rpc_error([&] { pair.call("echo", "", {}); })));
    std::this_thread::sleep_for(options.reconnect);
  }
  pair.peer.reset();
  pair.peer.emplace(pair.endpoint, pair.secret);
  typename Kit::Transport::Channel other{pair.endpoint, {}};
  other.call("echo", {}, pair.patient());
  bool found = false;
  for (int attempt = 0; attempt < 3 && !found; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(options.reconnect);
    try {
      found = pair.call("echo", "there", {}) == "there";
    } catch (const dist::RpcError& error) {
      CHECK(rpc::is_lost(error));
    }
  }
  CHECK(found);
}

template <class Kit>
void stopped_peers() {
  RpcPair<Kit> pair{"", {.silence = 1500ms}};
  auto call = pair.start("keep", "abc");
  // More than the system buffers: part of the lent memory is unread when the peer stops.
  REQUIRE(soon([&] { return pair.call("kept") == "1"; }));
  pair.peer->pause();
  const std::vector<rpc::Chunk> large = repeated_block(40 << 20);
  auto push = pair.channel->start("matches", large, {});
  const auto took = rpc_time([&] {
    const dist::RpcError error = rpc_error([&] { call.wait(); });
    CHECK(rpc::is_lost(error));
    CAPTURE(error.why());
    CHECK(error.was_silent());
    CHECK(rpc::is_lost(rpc_error([&] { push.wait(); })));
  });
  MESSAGE("a peer that stops is lost after " << took.count() << " ms, where silence is 1500 ms");
  pair.peer->resume();
  CHECK(pair.call("echo", "again") == "again");
}

template <class Kit>
void absent_peers() {
  using Transport = typename Kit::Transport;
  const dist::net::Endpoint endpoint = Kit::endpoint();
  typename Transport::Channel channel{endpoint, {}};
  CHECK(channel.state() == rpc::State::idle);
  CHECK(rpc::is_lost(rpc_error([&] { channel.call("echo", {}, {}); })));
  CHECK(rpc_error([&] { channel.call("echo", {}, {100ms, true}); }).failure() == rpc::Failure::deadline);
  auto cancelled = channel.start("echo", {}, {60s, true});
  cancelled.cancel();
  CHECK(rpc_error([&] { cancelled.wait(); }).failure() == rpc::Failure::cancelled);
  auto early = channel.start("echo", {}, {60s, true});
  CHECK_FALSE(early.is_done());
  std::optional<typename Kit::Peer> peer;
  std::thread late([&] {
    std::this_thread::sleep_for(100ms);
    peer.emplace(endpoint, "");
  });
  CHECK_NOTHROW(early.wait());
  late.join();
}

template <class Kit>
void secrets() {
  using Pair = RpcPair<Kit>;
  Pair pair{"kestrel 42"};
  CHECK(pair.call("echo", "known") == "known");
  for (const char* const other : {"", "kestrel 43"}) {
    typename Kit::Transport::Channel channel{pair.endpoint, {.secret = other}};
    const dist::RpcError error = rpc_error([&] { Pair::call(channel, "echo"); });
    CAPTURE(std::string{error.what()});
    CHECK(error.failure() == rpc::Failure::refused);
    CHECK(std::string{error.what()}.find("kestrel") == std::string::npos);
    CHECK(std::string{error.what()}.find("DIST_JOB_SECRET") != std::string::npos);
  }
  Pair open;
  typename Kit::Transport::Channel channel{open.endpoint, {.secret = "kestrel 42"}};
  CHECK(rpc_error([&] { Pair::call(channel, "echo"); }).failure() == rpc::Failure::refused);
  CHECK(pair.call("echo", "still known") == "still known");
}

template <class Kit>
void limits() {
  using Transport = typename Kit::Transport;
  const dist::net::Endpoint endpoint = Kit::own_endpoint();
  typename Transport::Server server{endpoint, {.longest = 100'000}, rpc_methods<Transport>()};
  typename Transport::Channel channel{endpoint, {.longest = 50'000}};
  CHECK(channel.call("matches", repeated_block(100'000), {}).pieces().size() == 1);
  const dist::RpcError request = rpc_error([&] { channel.call("matches", repeated_block(100'001), {}); });
  CHECK(request.failure() == rpc::Failure::refused);
  CHECK(request.why() == "a message of 100001 bytes, but only 100000 are allowed");
  CHECK(rpc::size_of(channel.call("echo", repeated_block(50'000), {}).pieces()) == 50'000);
  const dist::RpcError reply = rpc_error([&] { channel.call("echo", repeated_block(50'001), {}); });
  CHECK(reply.failure() == rpc::Failure::refused);
  CHECK(reply.why() == "a message of 50001 bytes, but only 50000 are allowed");
}

/// Lent memory of a reply is released once, whether the reply was received or not.
template <class Kit>
void lent_replies() {
  using Transport = typename Kit::Transport;
  using Exchange = typename Transport::Exchange;
  const dist::net::Endpoint endpoint = Kit::own_endpoint();
  std::atomic<int> released{0};
  std::mutex mutex;
  std::vector<Exchange> kept;
  const auto lend = [&](Exchange& exchange) { exchange.reply(repeated_block(20 << 20), [&released] { ++released; }); };
  typename Transport::Server server{endpoint, {}, {{"lend", lend}, {"later", [&](Exchange& exchange) {
                                                                      const std::lock_guard lock{mutex};
                                                                      kept.push_back(exchange.keep());
                                                                    }}}};
  typename Transport::Channel channel{endpoint, {}};
  {
    const auto reply = channel.call("lend", {}, {});
    CHECK(repeats_block(reply.pieces()));
    CHECK(rpc::size_of(reply.pieces()) == 20 << 20);
  }
  CHECK(soon([&] { return released == 1; }));
  auto call = channel.start("later", {}, {});
  REQUIRE(soon([&] {
    const std::lock_guard lock{mutex};
    return kept.size() == 1;
  }));
  CHECK_FALSE(kept[0].cancelled());
  call.cancel();
  CHECK(rpc_error([&] { call.wait(); }).failure() == rpc::Failure::cancelled);
  CHECK(soon([&] { return kept[0].cancelled(); }));
  lend(kept[0]);
  CHECK(soon([&] { return released == 2; }));
}

/// A handler that lends memory for a reply may keep its owner, including the exchange, until the memory is released.
template <class Kit>
void releases_that_own_their_exchange() {
  using Transport = typename Kit::Transport;
  using Exchange = typename Transport::Exchange;
  const dist::net::Endpoint endpoint = Kit::own_endpoint();
  std::atomic<int> released{0};
  const auto lend = [&](Exchange& exchange) {
    const auto own = std::make_shared<Exchange>(exchange.keep());
    const std::uint64_t size = std::stoull(rpc_text(own->pieces()));
    own->reply(repeated_block(size), [own, &released] { ++released; });
  };
  typename Transport::Server server{endpoint, {}, {{"lend", lend}}};
  typename Transport::Channel channel{endpoint, {}};
  const std::uint64_t sizes[] = {0, 10, 20 << 20};
  for (const std::uint64_t size : sizes) {
    const std::vector<std::byte> number = rpc_number(size);
    const rpc::Chunk piece = number;
    CHECK(rpc::size_of(channel.call("lend", {&piece, 1}, {}).pieces()) == size);
  }
  CHECK(soon([&] { return released == 3; }));
}

/// A running handler detects that its caller has gone, even if the call had to wait for the server; its exchange still
/// has the request after the reply.
template <class Kit>
void handlers_of_cancelled_calls() {
  using Transport = typename Kit::Transport;
  using Exchange = typename Transport::Exchange;
  const dist::net::Endpoint endpoint = Kit::own_endpoint();
  typename Transport::Channel channel{endpoint, {}};
  auto call = channel.start("until cancelled", {}, {60s, true});
  std::atomic<bool> runs{false}, sees{false};
  std::atomic<std::size_t> asked{0};
  typename Transport::Server server{endpoint, {}, {{"until cancelled", [&](Exchange& exchange) {
                                                      runs = true;
                                                      sees = soon([&] { return exchange.cancelled(); });
                                                      exchange.reply({});
                                                      asked = exchange.method().size();
                                                    }}}};
  std::thread canceller([&] {
    soon([&] { return runs.load(); });
    call.cancel();
  });
  CHECK(rpc_error([&] { call.wait(); }).failure() == rpc::Failure::cancelled);
  canceller.join();
  CHECK(soon([&] { return asked == std::string_view{"until cancelled"}.size(); }));
  CHECK(sees);
}

/// A server that stops ends pending calls, and releases its address.
template <class Kit>
void stopping_servers() {
  using Transport = typename Kit::Transport;
  const dist::net::Endpoint endpoint = Kit::own_endpoint();
  std::optional<typename Transport::Server> server;
  server.emplace(endpoint, rpc::ServerOptions{}, rpc_methods<Transport>());
  CHECK_THROWS_AS(
      (typename Transport::Server{endpoint, rpc::ServerOptions{.port_in_use = 50ms}, rpc_methods<Transport>()}),
      dist::RendezvousError);
  CHECK_THROWS_AS((typename Transport::Server{{"127.0.0.1", "port"}, {}, rpc_methods<Transport>()}),
                  dist::InvalidArgument);
  typename Transport::Channel channel{endpoint, {}};
  auto call = channel.start("keep", {}, {});
  REQUIRE(soon([&] { return RpcPair<Kit>::call(channel, "kept") == "1"; }));
  server->stop();
  CHECK(rpc::is_lost(rpc_error([&] { call.wait(); })));
  RpcServerState<Transport>::get().kept.clear();
  server.emplace(endpoint, rpc::ServerOptions{}, rpc_methods<Transport>());
  CHECK(RpcPair<Kit>::call(channel, "echo", "new") == "new");
}

TEST_CASE_TEMPLATE_DEFINE("transports of calls", Kit, rpc_transports) {
  for (const std::size_t clients : {1U, 2U, 4U})
    SUBCASE(("bytes come back whole, of any number, to each of the clients: " + std::to_string(clients)).c_str()) {
      echoes_of_all_sizes<Kit>(clients);
    }
#ifndef DIST_TEST_SANITIZER
  SUBCASE("a message of 1 GiB arrives whole") { long_messages<Kit>(std::uint64_t{1} << 30); }
  // 5 GiB does not fit into 32 bits. Preset huge-messages.
  if (std::getenv("DIST_TEST_HUGE_MESSAGES") != nullptr) SUBCASE("a message of 5 GiB arrives whole") {
      long_messages<Kit>(std::uint64_t{5} << 30);
    }
#endif
  SUBCASE("a sink receives all of a reply, in order") { sinks<Kit>(); }
  SUBCASE("calls are received in the order in which they are made") { order<Kit>(); }
  SUBCASE("64 calls wait at the same time, and each gets its own reply") { outstanding<Kit>(); }
  SUBCASE("a call ends at its deadline, and the server detects it") { deadlines<Kit>(); }
  SUBCASE("a call is cancelled, and the server detects it") { cancellation<Kit>(); }
  SUBCASE("an exception of a handler arrives with its type, and is not a transport failure") {
    failures_of_handlers<Kit>();
  }
  SUBCASE("any bytes are a valid request") { any_bytes<Kit>(); }
  SUBCASE("calls to a peer that exits are lost") { dead_peers<Kit>(); }
  SUBCASE("a restarted peer replies, with another incarnation") { restarted_peers<Kit>(); }
  SUBCASE("a peer that was away is found at the next attempt") { peers_that_were_away<Kit>(); }
  if constexpr (Kit::pauses) SUBCASE("calls to a stopped peer are lost, and it may continue") {
      stopped_peers<Kit>();
    }
  SUBCASE("without a listener a call fails, or waits") { absent_peers<Kit>(); }
  SUBCASE("only peers with the secret of the job are accepted") { secrets<Kit>(); }
  SUBCASE("messages that are longer than allowed are refused") { limits<Kit>(); }
  SUBCASE("memory lent for a reply is released") { lent_replies<Kit>(); }
  SUBCASE("memory for a reply may be released with its exchange") { releases_that_own_their_exchange<Kit>(); }
  SUBCASE("a running handler detects that its call is cancelled") { handlers_of_cancelled_calls<Kit>(); }
  SUBCASE("a server that stops ends pending calls, and another may use its address") { stopping_servers<Kit>(); }
}

}  // namespace conformance
