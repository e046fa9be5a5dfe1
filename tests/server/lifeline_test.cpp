#include <dist/server/lifeline.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/rpc/local_transport.hpp>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::Local;
using dist::Task;
using dist::TaskType;
using dist::server::detail::HandshakeReply;
using dist::server::detail::HandshakeRequest;
using dist::server::detail::HandshakeStatus;
using dist::server::detail::Leave;
using Lifeline = dist::server::Lifeline<Local::Exchange>;
using State = Lifeline::State;

struct Pair {
  Local::Call start(std::string_view method, const std::vector<std::byte>& bytes) {
    const dist::rpc::Chunk piece = bytes;
    return channel->start(method, {&piece, 1}, {});
  }
  HandshakeReply greet(std::uint64_t coordinator, const std::string& task = "ps 1",
                       const std::string& program = dist::binary_identity(), bool takes_over = false) {
    const auto bytes = dist::ArchiveWriter{}.put(program).put(HandshakeRequest{coordinator, task, takes_over}).take();
    return dist::from_bytes<HandshakeReply>(start("lifeline.greet", bytes).reply().pieces(), "A welcome");
  }
  Local::Call attend(std::uint64_t coordinator) { return start("lifeline.attend", dist::to_bytes(coordinator)); }
  HandshakeReply take_over(std::uint64_t coordinator) {
    return greet(coordinator, "ps 1", dist::binary_identity(), true);
  }
  void leave(std::uint64_t coordinator, int status = 0) {
    start("lifeline.leave", dist::to_bytes(Leave{coordinator, status})).wait();
  }
  State state() { return lifeline.standing().state; }

  Lifeline lifeline{Task{TaskType::parameter_server, 1}, 77};
  Local::Server server{{"here", "1"}, {}, lifeline.methods()};
  std::optional<Local::Channel> channel{std::in_place, dist::net::Endpoint{"here", "1"}, dist::rpc::ChannelOptions{}};
};

}  // namespace

TEST_CASE("a process notices that its coordinator connects, is lost and leaves") {
  Pair pair;
  CHECK(pair.state() == State::waiting);
  const HandshakeReply welcome = pair.greet(5);
  CHECK(welcome.verdict == HandshakeStatus::welcome);
  CHECK(welcome.incarnation == 77);
  CHECK(pair.state() == State::attended);
  {
    Local::Call attending = pair.attend(5);
    CHECK(!attending.is_done());
    CHECK(pair.state() == State::attended);
    attending.cancel();
  }
  CHECK(pair.state() == State::lost);
  CHECK(pair.greet(5).verdict == HandshakeStatus::welcome);  // reconnected
  const Local::Call attending = pair.attend(5);
  CHECK(pair.state() == State::attended);
  pair.leave(6);  // of another coordinator
  CHECK(pair.state() == State::attended);
  pair.leave(5);
  CHECK(pair.lifeline.wait_for(60s).state == State::left);
  CHECK(pair.lifeline.standing().status == 0);
  CHECK(attending.is_done());
  CHECK(pair.greet(7).verdict == HandshakeStatus::ended);
}

TEST_CASE("another coordinator takes over the state held for a lost one on request") {
  Pair pair;
  CHECK(pair.greet(5).verdict == HandshakeStatus::welcome);
  pair.attend(5).cancel();
  CHECK(pair.greet(6).verdict == HandshakeStatus::held);
  CHECK(pair.state() == State::lost);
  CHECK(pair.take_over(6).verdict == HandshakeStatus::welcome);
  CHECK(pair.greet(5).verdict == HandshakeStatus::busy);
  CHECK(pair.state() == State::attended);
}

TEST_CASE("a coordinator sends the exit status of all processes, even after a lost connection") {
  Pair pair;
  CHECK(pair.greet(5).verdict == HandshakeStatus::welcome);
  pair.attend(5).cancel();
  pair.leave(5, 42);
  CHECK(pair.state() == State::left);
  CHECK(pair.lifeline.standing().status == 42);
}

TEST_CASE("a process has one coordinator at a time, which may reconnect") {
  Pair pair;
  CHECK(pair.greet(5).verdict == HandshakeStatus::welcome);
  const Local::Call before = pair.attend(5);
  CHECK(pair.greet(6).verdict == HandshakeStatus::busy);
  CHECK(pair.attend(6).is_done());
  CHECK(!before.is_done());
  CHECK(pair.greet(5).verdict == HandshakeStatus::welcome);  // before the loss of the connection was noticed
  CHECK(before.is_done());
  const Local::Call again = pair.attend(5);
  CHECK(!again.is_done());
  pair.channel.reset();
  CHECK(pair.state() == State::lost);
}

TEST_CASE("a coordinator of another program or with another task list is rejected with the reason") {
  Pair pair;
  const HandshakeReply of_program = pair.greet(5, "ps 1", "another build");
  CHECK(of_program.verdict == HandshakeStatus::other_program);
  CHECK(of_program.program == dist::binary_identity());
  const HandshakeReply of_task = pair.greet(5, "worker 0");
  CHECK(of_task.verdict == HandshakeStatus::other_task);
  CHECK(of_task.task == "ps 1");
  CHECK(pair.state() == State::waiting);
}

TEST_CASE("invalid bytes change nothing") {
  Pair pair;
  for (const char* method : {"lifeline.greet", "lifeline.attend", "lifeline.leave"}) {
    const std::string what =
        support::what_throws<dist::RpcError>([&] { pair.start(method, std::vector<std::byte>(3)).wait(); });
    CHECK(what.find("dist::ArchiveError") != std::string::npos);
  }
  CHECK(pair.state() == State::waiting);
}
