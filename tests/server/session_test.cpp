#include <dist/server/session.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/server/shard_server.hpp>

#include <doctest/doctest.h>

#include "server/served_threads.hpp"
#include "support/soon.hpp"
#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::Local;
using dist::Task;
using dist::TaskType;
using dist::server::SessionOptions;
using dist_test::cluster_of;
using dist_test::ps_0;
using dist_test::ps_1;
using dist_test::served;
using dist_test::worker_0;
using support::soon;
using support::what_throws;
using Session = dist::server::Session<Local>;

/// A process that can be killed.
struct Process {
  explicit Process(Task task, std::uint64_t incarnation = 1)
      : Process(task, incarnation, task.type == TaskType::worker ? "worker" : "ps" + std::to_string(task.index)) {}
  Process(Task task, std::uint64_t incarnation, const std::string& host) : lifeline(task, incarnation) {
    server.emplace(dist::net::Endpoint{host, "1"}, dist::rpc::ServerOptions{}, lifeline.methods());
  }
  [[nodiscard]] auto state() { return lifeline.standing().state; }

  dist::server::Lifeline<Local::Exchange> lifeline;
  std::optional<Local::Server> server;
};
using State = dist::server::Lifeline<Local::Exchange>::State;

SessionOptions patient() {
  SessionOptions options;
  options.wait_for_servers = 60s;
  return options;
}

}  // namespace

TEST_CASE("a session waits for all parameter servers, and names missing ones (spec J02)") {
  Process first{ps_0};
  SessionOptions options;
  options.wait_for_servers = 100ms;
  CHECK(what_throws<dist::ServerUnavailable>([&] {
          const Session session{served(cluster_of(3)), options};
        }) ==
        "Parameter server 1 at ps1:1 did not become available within 0.1 s (ps 1 at ps1:1: no process has answered "
        "there, ps 2 at ps2:1: no process has answered there). Start it, or wait longer for it (wait_for_servers).");
  CHECK(first.state() == State::lost);  // it does not end, because the coordinator may be restarted

  std::optional<Process> second;
  std::thread later{[&] {
    std::this_thread::sleep_for(50ms);
    second.emplace(ps_1, 8);
  }};
  {
    SessionOptions takes_over = patient();
    takes_over.takes_over = true;
    const Session session{served(cluster_of(2)), takes_over};
    CHECK(session.incarnation(ps_0) == 1);
    CHECK(session.incarnation(ps_1) == 8);
    CHECK(session.incarnation(worker_0) == 0);  // workers may connect later
    CHECK_NOTHROW(session.check());
    Process worker{worker_0, 9};
    CHECK(soon([&] { return session.incarnation(worker_0) == 9; }));
    CHECK(worker.state() == State::attended);
  }
  later.join();
  CHECK(first.state() == State::left);
  CHECK(second->state() == State::left);
}

TEST_CASE("workers can disconnect, reconnect and be added") {
  Process server{ps_0};
  std::optional<Process> worker{std::in_place, worker_0, 2};
  Session session{served(cluster_of(1)), patient()};
  REQUIRE(soon([&] { return session.incarnation(worker_0) == 2; }));
  worker->server.reset();
  worker.reset();
  worker.emplace(worker_0, 3);
  CHECK(soon([&] { return session.incarnation(worker_0) == 3; }));
  constexpr Task worker_1{TaskType::worker, 1};
  Process added{worker_1, 4, "another"};
  session.add({worker_1, {"another", "1"}});
  CHECK(soon([&] { return session.incarnation(worker_1) == 4; }));
  CHECK_NOTHROW(session.check());
}

TEST_CASE("a newly added process is told that the work is done") {
  constexpr Task worker_1{TaskType::worker, 1};
  Process server{ps_0}, worker{worker_0}, added{worker_1, 1, "another"};
  {
    Session session{served(cluster_of(1)), patient()};
    session.add({worker_1, {"another", "1"}});
  }
  for (Process* process : {&server, &worker, &added}) CHECK(process->state() == State::left);
}

TEST_CASE("a process that starts while the session ends is told so, despite an earlier failed greeting") {
  SessionOptions options = patient();
  options.channel.reconnect = std::chrono::hours{1};
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    Process server{ps_0};
    std::optional<Process> late;
    try {
      Session session{served(cluster_of(1)), options};
      std::this_thread::sleep_for(1500ms);  // a greeting takes 1 s
      late.emplace(worker_0);
      if (fails) throw std::runtime_error("the program fails");
    } catch (const std::runtime_error&) {
    }
    CHECK(late->state() == (fails ? State::lost : State::left));
  }
}

TEST_CASE("a lost parameter server is an error, once (spec L15)") {
  Process server{ps_0};
  std::atomic<int> losses{0};
  SessionOptions options = patient();
  options.on_loss = [&](const dist::ServerUnavailable& error) {
    ++losses;
    CHECK(error.rank() == 0);
    CHECK(error.host() == "ps0:1");
  };
  const Session session{served(cluster_of(1)), options};
  server.server.reset();
  REQUIRE(soon([&] { return losses > 0; }));
  CHECK(
      what_throws<dist::ServerUnavailable>([&] { session.check(); }) ==
      "Parameter server 0 at ps0:1 is unavailable (no server of this process listens there, 3 times). Restart the job "
      "from its last checkpoint.");
  std::this_thread::sleep_for(100ms);
  CHECK(losses == 1);
}

TEST_CASE("a restarted parameter server has lost its variables") {
  std::optional<Process> server{std::in_place, ps_0, 1};
  SessionOptions options = patient();
  options.attempts = 1000;  // so that the server restarts before it is unavailable
  const Session session{served(cluster_of(1)), options};
  server->server.reset();
  server.emplace(ps_0, 2);
  REQUIRE(soon([&] { return what_throws([&] { session.check(); }) != "nothing was thrown"; }));
  CHECK(what_throws<dist::ServerUnavailable>([&] { session.check(); }) ==
        "Parameter server 0 at ps0:1 has lost its variables: restore a checkpoint (it was started again). Restart the "
        "job "
        "from its last checkpoint.");
}

TEST_CASE("a lost connection alone is tolerated") {
  std::optional<Process> server{std::in_place, ps_0, 1};
  SessionOptions options = patient();
  options.attempts = 1000;
  const Session session{served(cluster_of(1)), options};
  server->server.reset();
  server.emplace(ps_0, 1);  // the same process for the session
  CHECK(soon([&] { return server->state() == State::attended; }));
  CHECK_NOTHROW(session.check());
}

TEST_CASE("processes of other tasks and other jobs are rejected by name") {
  Process other{ps_1, 1, "ps0"};
  CHECK(what_throws<dist::InvalidArgument>([&] {
          const Session session{served(cluster_of(1)), patient()};
        }) == "The process at ps0:1 is not ps 0 (it is 'ps 1'). Give all processes of the job the same list of tasks.");
  SessionOptions options = patient();
  options.channel.secret = "another";
  CHECK(what_throws<dist::RpcError>([&] {
          const Session session{served(cluster_of(1)), options};
        }).find("was refused (the secrets differ)") != std::string::npos);
  other.server.reset();
  const Local::Server foreign{{"ps0", "1"}, {}, {}};
  CHECK(what_throws<dist::RpcError>([&] {
          const Session session{served(cluster_of(1)), patient()};
        }).find("names a method that the server does not have") != std::string::npos);
}

TEST_CASE("a parameter server with variables of a lost coordinator is an error, unless it is taken over") {
  Process server{ps_0}, worker{worker_0};
  const auto fail = [&] {
    const Session first{served(cluster_of(1)), patient()};
    while (first.incarnation(worker_0) == 0) std::this_thread::sleep_for(1ms);
    throw std::runtime_error("the coordinator fails");
  };
  CHECK_THROWS_AS(fail(), std::runtime_error);
  CHECK(what_throws<dist::ServerUnavailable>([&] {
          const Session second{served(cluster_of(1)), patient()};
        }) ==
        "Parameter server 0 at ps0:1 holds the variables of another coordinator (it has lost that coordinator, and "
        "waits for its return). Start the whole job again, or take over the variables (SessionOptions::takes_over).");
  SessionOptions options = patient();
  options.takes_over = true;
  {
    const Session third{served(cluster_of(1)), options};
    CHECK(server.state() == State::attended);
    CHECK(soon([&] { return third.incarnation(worker_0) != 0; }));
  }
  CHECK(server.state() == State::left);
  CHECK(worker.state() == State::left);
}

TEST_CASE("a task thread that has ended with its coordinator is an error for another one") {
  dist::server::Lifeline<Local::Exchange> ended{ps_0, 1, State::left};
  const Local::Server server{{"ps0", "1"}, {}, ended.methods()};
  CHECK(what_throws<dist::InvalidArgument>([&] {
          const Session session{served(cluster_of(1)), patient()};
        }) ==
        "ps 0 at ps0:1 has ended (the coordinator that it served has finished its work). Create a new job for another "
        "coordinator, such as a dist::LocalJob.");
}

TEST_CASE("a second coordinator waits until the first one has left") {
  Process server{ps_0};
  std::optional<Session> first{std::in_place, served(cluster_of(1)), patient()};
  SessionOptions options;
  options.wait_for_servers = 400ms;
  CHECK(what_throws<dist::ServerUnavailable>([&] {
          const Session second{served(cluster_of(1)), options};
        }).find("ps 0 at ps0:1: it serves another coordinator") != std::string::npos);
  CHECK(server.state() == State::attended);
  first.reset();
  CHECK(server.state() == State::left);
}
