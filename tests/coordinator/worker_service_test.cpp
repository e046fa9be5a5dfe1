#include <dist/coordinator/worker_service.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dist/rpc/local_transport.hpp>

#include <doctest/doctest.h>

#include "coordinator/local_workers.hpp"
#include "support/soon.hpp"

namespace {

using namespace std::chrono_literals;
using dist::ArchiveReader;
using dist::ArchiveWriter;
using dist::Local;
using dist::WorkerContext;
using dist::detail::CallStatus;
using Bytes = std::vector<std::byte>;

std::atomic<int> ran{0};
std::atomic<bool> gate{false};

constexpr auto add = [](WorkerContext&, int x, const std::vector<int>& list) {
  ++ran;
  return x + list.at(0);
};
using Add = std::remove_const_t<decltype(add)>;
constexpr auto wait = [](WorkerContext& worker) {
  ++ran;
  while (!gate && !worker.stop_requested()) std::this_thread::sleep_for(1ms);
  return worker.stop_requested();
};
using Wait = std::remove_const_t<decltype(wait)>;
using Workers = dist::WorkerList<dist::Local>;

Bytes message(int x, const std::vector<int>& list) {
  return dist::detail::closure_message<Workers, Add, int, std::vector<int>>(add, x, list);
}

/// A worker, and a client that sends requests to it.
struct Talk {
  Talk() { ran = 0, gate = false; }
  ~Talk() { gate = true; }

  Bytes ask(std::string_view method, const Bytes& request) { return ask(channel, method, request); }
  static Bytes ask(Local::Channel& to, std::string_view method, const Bytes& request) {
    const dist::rpc::Chunk piece = request;
    return dist::rpc::joined(to.call(method, {&piece, 1}, {}).pieces());
  }
  std::uint64_t greet(std::uint64_t before = 0) {
    const Bytes greeting = ArchiveWriter{}
                               .put(dist::binary_identity())
                               .put(before)
                               .put(dist::detail::WorkerIdentity{1, 2, 1, {"s:1"}})
                               .take();
    return dist::from_bytes<dist::detail::Handshake>(ask("worker/greet", greeting)).session;
  }
  static Bytes in(std::uint64_t session, const Bytes& rest) {
    return ArchiveWriter{}.put(session).put_bytes(rest.data(), rest.size()).take();
  }
  static Bytes in_run(std::uint64_t session, std::uint64_t run, const Bytes& rest) {
    return ArchiveWriter{}.put(session).put(run).put_bytes(rest.data(), rest.size()).take();
  }
  static CallStatus ending_of(const Bytes& reply) { return ArchiveReader{reply}.get<CallStatus>(); }

  dist_test::LocalWorkers<Local> workers{1};
  Local::Channel channel{workers[0], {}};
};

}  // namespace

TEST_CASE("a worker runs functions of its program in a session") {
  Talk talk;
  const std::uint64_t session = talk.greet();
  CHECK(session != 0);
  const Bytes reply = talk.ask("worker/run", Talk::in_run(session, 1, message(3, {4})));
  ArchiveReader reader{reply};
  CHECK(reader.get<CallStatus>() == CallStatus::result);
  CHECK(reader.get<int>() == 7);
  CHECK(Talk::ending_of(talk.ask("worker/run", Talk::in_run(session + 1, 1, message(3, {4})))) ==
        CallStatus::no_session);
  CHECK(Talk::ending_of(talk.ask("worker/make", Talk::in(session + 1, {}))) == CallStatus::no_session);
  CHECK(talk.workers.service(0).sessions() == 1);
  talk.ask("worker/leave", dist::to_bytes(session));
  talk.ask("worker/leave", dist::to_bytes(session));
  CHECK(talk.workers.service(0).sessions() == 0);
  CHECK(Talk::ending_of(talk.ask("worker/run", Talk::in_run(session, 1, message(3, {4})))) == CallStatus::no_session);
}

TEST_CASE("a coordinator of another program gets no session") {
  Talk talk;
  const auto answer = dist::from_bytes<dist::detail::Handshake>(
      talk.ask("worker/greet", ArchiveWriter{}.put(std::string("another build")).put(7).take()));
  CHECK(answer.session == 0);
  CHECK(answer.program == dist::binary_identity());
  CHECK(talk.workers.service(0).sessions() == 0);
}

TEST_CASE("truncated and modified requests are rejected") {
  Talk talk;
  const std::uint64_t session = talk.greet();
  const Bytes whole = Talk::in_run(session, 1, message(3, {4}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(Talk::ending_of(talk.ask("worker/run", cut)) == CallStatus::refused);
  }
  CHECK(ran == 0);
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  CHECK(Talk::ending_of(talk.ask("worker/run", longer)) == CallStatus::refused);
  // Another function, and a list of another length.
  for (const std::size_t at : {2 * sizeof(std::uint64_t), 3 * sizeof(std::uint64_t), whole.size() - 12}) {
    Bytes changed = whole;
    changed[at] ^= std::byte{0x55};
    const Bytes reply = talk.ask("worker/run", changed);
    CHECK(Talk::ending_of(reply) == CallStatus::refused);
  }
  CHECK(ran == 0);
  for (const char* method : {"worker/greet", "worker/watch", "worker/make", "worker/stop", "worker/leave"})
    for (const std::size_t size : {0u, 1u, 7u, 9u, 17u})
      CHECK(Talk::ending_of(talk.ask(method, Bytes(size, std::byte{1}))) != CallStatus::result);
  CHECK(Talk::ending_of(talk.ask("worker/run", whole)) == CallStatus::result);
  CHECK(ran == 1);
}

TEST_CASE("exceptions of a function are distinguished from rejections by the worker") {
  Talk talk;
  const std::uint64_t session = talk.greet();
  const Bytes reply = talk.ask("worker/run", Talk::in_run(session, 1, message(3, {})));
  ArchiveReader reader{reply};
  CHECK(reader.get<CallStatus>() == CallStatus::thrown);
  CHECK(reader.get<dist::detail::RemoteFailure>().thrown == "std::out_of_range");
  // An ArchiveError thrown by the function is an error of the function.
  const auto parse = [](WorkerContext&) { return dist::from_bytes<int>(Bytes(3)); };
  const auto parsing = dist::detail::closure_message<Workers, std::remove_const_t<decltype(parse)>>(parse);
  CHECK(Talk::ending_of(talk.ask("worker/run", Talk::in_run(session, 1, parsing))) == CallStatus::thrown);
}

TEST_CASE("the function of an ended session gets a stop request, and keeps its objects until it returns") {
  Talk talk;
  const std::uint64_t session = talk.greet();
  const Bytes waiting = Talk::in_run(session, 1, dist::detail::closure_message<Workers, Wait>(wait));
  Bytes reply;
  std::thread caller([&] {
    Local::Channel other{talk.workers[0], {}};
    reply = Talk::ask(other, "worker/run", waiting);
  });
  REQUIRE(support::soon([] { return ran == 1; }));
  CHECK(Talk::ending_of(talk.ask("worker/run", waiting)) == CallStatus::refused);  // one at a time
  CHECK(talk.greet(session) == session + 1);
  caller.join();
  CHECK(reply.back() == std::byte{1});
  CHECK(talk.workers.service(0).sessions() == 1);
}

TEST_CASE("a request to stop affects its run, but not later ones (spec L05)") {
  Talk talk;
  const std::uint64_t session = talk.greet();
  const auto stop = [&](std::uint64_t run) { talk.ask("worker/stop", ArchiveWriter{}.put(session).put(run).take()); };
  Bytes reply;
  std::thread caller([&] {
    Local::Channel other{talk.workers[0], {}};
    reply =
        Talk::ask(other, "worker/run", Talk::in_run(session, 2, dist::detail::closure_message<Workers, Wait>(wait)));
  });
  REQUIRE(support::soon([] { return ran == 1; }));
  stop(1);
  std::this_thread::sleep_for(5ms);
  CHECK(talk.workers.service(0).sessions() == 1);
  stop(2);
  stop(1);
  caller.join();
  CHECK(Talk::ending_of(reply) == CallStatus::stopped);
  CHECK(Talk::ending_of(talk.ask("worker/run", Talk::in_run(session, 3, message(3, {4})))) == CallStatus::result);
  // A function that does not check has a result, even if the request to stop came first.
  stop(4);
  CHECK(Talk::ending_of(talk.ask("worker/run", Talk::in_run(session, 4, message(3, {4})))) == CallStatus::result);
}

TEST_CASE("the session of a lost coordinator ends by itself (spec L22)") {
  Talk talk;
  const std::uint64_t session = talk.greet();
  std::optional<Local::Channel> other;
  other.emplace(talk.workers[0], dist::rpc::ChannelOptions{});
  const Bytes number = dist::to_bytes(session);
  const dist::rpc::Chunk piece = number;
  auto watching = other->start("worker/watch", {&piece, 1}, {});
  CHECK_FALSE(watching.is_done());
  CHECK(talk.greet() == session + 1);
  CHECK(talk.workers.service(0).sessions() == 2);
  other.reset();
  CHECK(watching.is_done());
  CHECK(support::soon([&] { return talk.workers.service(0).sessions() == 1; }));
  CHECK(talk.ask("worker/watch", dist::to_bytes(session)).empty());  // returns at once, because the session has ended
  CHECK(Talk::ending_of(talk.ask("worker/run", Talk::in_run(session + 1, 1, message(3, {4})))) == CallStatus::result);
}
