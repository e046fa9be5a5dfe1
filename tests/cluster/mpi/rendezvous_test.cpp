#include <dist/cluster/mpi/rendezvous.hpp>

#include <doctest/doctest.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include <dist/net/listen.hpp>
#include <net/pair.hpp>
#include <net/ports.hpp>
#include <support/processes.hpp>
#include <support/stderr_of.hpp>

using dist::io::Descriptor;
using namespace std::chrono_literals;
using namespace dist::net;
using dist::concat;
using dist::detail::Rendezvous;
using dist::detail::WorldFailure;
using dist::detail::WorldInfo;

namespace {

/// A server that runs the rendezvous in a thread of the test, for the node of `tasks[rank]`, its lowest rank.
class Server {
 public:
  Server(const std::vector<Endpoint>& tasks, std::size_t rank, Milliseconds deadline, const std::string& secret = "",
         Milliseconds patience = 10s) {
    options.tasks = tasks;
    options.rank = rank;
    options.deadline = deadline;
    options.secret = secret;
    options.patience = patience;
    auto [here, there] = dist_test::socket_pair();
    own = std::move(here);
    thread_ = std::thread{[this, socket = std::make_shared<Descriptor>(std::move(there))] {
      const dist::NodeMap nodes{options.tasks};
      const std::size_t node = nodes.node_of(options.rank);
      HandshakeServer reception{listen_at(options.tasks[options.rank], {}),
                                {options.secret, options.tasks.size(), list_checksum(options.tasks, ""), 1s}};
      dist::detail::NodeRanks ranks{nodes.ranks(node)};
      dist::detail::NodeLinks links{nodes.nodes(), 10s};
      ranks.add(options.rank, Connection{std::move(*socket), 4096});
      try {
        start = Rendezvous{options, nodes, reception, ranks, links}.run();
      } catch (const WorldFailure& failure) {
        problem = failure.text.problem;
        why = failure.text.why;
        links.send_all(dist::detail::WorldFrame::failed, failure.record());
      } catch (const dist::detail::Abandoned&) {
        problem = "abandoned";
      }
    }};
  }
  ~Server() { finish(); }
  void finish() {
    if (thread_.joinable()) thread_.join();
  }

  dist::HostedOptions options;
  Descriptor own;
  WorldInfo start;
  std::string problem, why;

 private:
  std::thread thread_;
};

Handshake worker(const std::vector<Endpoint>& tasks, std::size_t rank) {
  return {Handshake::Role::worker, rank, tasks.size(), list_checksum(tasks, ""), "host", machine_id()};
}

Connection call(const Endpoint& server, const Handshake& hello) {
  Dialer dialer{server, hello, {}};
  return dial(dialer, "The server", 20s, Deadline::in(20s));
}

std::string refusal_of(const Endpoint& server, const Handshake& hello) {
  try {
    call(server, hello);
    return "";
  } catch (const dist::RendezvousError& error) {
    return error.what();
  }
}

/// Two nodes on one machine, at 127.0.0.1 and 127.0.0.2.
std::vector<Endpoint> two_nodes(std::size_t tasks) {
  std::vector<Endpoint> endpoints = dist_test::free_endpoints(tasks);
  for (std::size_t task = 1; task < tasks; task += 2) endpoints[task].host = "127.0.0.2";
  return endpoints;
}

}  // namespace

TEST_CASE("a node whose tasks have connected starts, under a unique name") {
  const auto tasks = dist_test::free_endpoints(2);
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    Server server{tasks, 0, 20s};
    const Connection second = call(tasks[0], worker(tasks, 1));
    server.finish();
    CHECK(server.problem == "");
    CHECK(server.start.node_names == std::vector<std::string>{host_name()});
    names.push_back(server.start.name);
  }
  CHECK(names[0] != names[1]);
  CHECK(names[0].size() < 256);  // PMIX_MAX_NSLEN
}

TEST_CASE("a node whose name is too long for libpmix is named by its address") {
  const std::string name(57, 'a');
  std::vector<dist::HostedTask> tasks = dist_test::free_endpoints(1);
  support::Processes process{1, [&](std::size_t) {
                               if (unshare(CLONE_NEWUTS) != 0 || sethostname(name.data(), name.size()) != 0) return 77;
                               Server server{tasks, 0, 20s};
                               server.finish();
                               return server.start.node_names == std::vector<std::string>{"127.0.0.1"} ? 0 : 1;
                             }};
  const int status = process.wait()[0];
  CHECK((status == 0 || status == 77));
}

TEST_CASE("two servers connect; nodes with the same name are named by their addresses") {
  const auto tasks = two_nodes(4);
  Server second{tasks, 1, 20s};
  const Connection rank_3 = call(tasks[1], worker(tasks, 3));
  Server first{tasks, 0, 20s};
  const Connection rank_2 = call(tasks[0], worker(tasks, 2));
  first.finish();
  second.finish();
  CHECK(first.problem == "");
  CHECK(first.start.name == second.start.name);
  CHECK(first.start.node_names == std::vector<std::string>{"127.0.0.1", "127.0.0.2"});
  CHECK(second.start.node_names == first.start.node_names);
}

TEST_CASE("missing processes are named, on all nodes") {
  const auto tasks = two_nodes(6);
  Server first{tasks, 0, 1500ms}, second{tasks, 1, 20s};
  const Connection rank_2 = call(tasks[0], worker(tasks, 2));
  first.finish();
  second.finish();
  const std::string problem = concat("Worker 3 at ", to_string(tasks[3]), ", worker 4 at ", to_string(tasks[4]),
                                     ", worker 5 at ", to_string(tasks[5]), " have not joined within 1.5 s");
  CHECK(first.problem == problem);
  CHECK(second.problem == problem);
}

TEST_CASE("a waiting process reports this after a while, once") {
  const auto tasks = two_nodes(2);
  for (const std::size_t waiting : {0U, 1U}) {
    const testing::Ending ending = testing::stderr_of([&] { Server{tasks, waiting, 1500ms, "", 100ms}.finish(); });
    const std::string missing = concat("dist: Worker ", 1 - waiting, " at ", to_string(tasks[1 - waiting]));
    CAPTURE(ending.stderr_text);
    CHECK(ending.stderr_text.starts_with(missing + " has not joined yet ("));
    CHECK(ending.stderr_text.ends_with("); waiting up to 1.5 s\n"));
    CHECK(std::count(ending.stderr_text.begin(), ending.stderr_text.end(), '\n') == 1);
  }
}

TEST_CASE("a node without the first server names it") {
  const auto tasks = two_nodes(2);
  Server second{tasks, 1, 200ms};
  second.finish();
  CHECK(second.problem == concat("Worker 0 at ", to_string(tasks[0]), " has not joined within 0.2 s"));
  CHECK(second.why == "Connection refused");
}

TEST_CASE("a process outside the job is refused with the reason") {
  const auto tasks = two_nodes(4);
  Server first{tasks, 0, 1s};
  CHECK(refusal_of(tasks[0], worker(tasks, 9)).find("Worker 9 on host 'host' is not in the list of tasks") == 0);
  CHECK(refusal_of(tasks[0], worker(tasks, 3)).find("Worker 3 on host 'host' connected to the wrong task") == 0);
  CHECK(refusal_of(tasks[0], worker(tasks, 0)).find("Worker 0 has joined twice") == 0);
  Handshake elsewhere = worker(tasks, 2);
  elsewhere.machine = "another";
  CHECK(refusal_of(tasks[0], elsewhere)
            .find("Worker 2 on host 'host' runs on another machine or container than worker 0") == 0);
  Handshake server = worker(tasks, 2);
  server.role = Handshake::Role::server;
  CHECK(refusal_of(tasks[0], server).find("Worker 2 on host 'host' connected to the wrong task") == 0);
  const Connection rank_2 = call(tasks[0], worker(tasks, 2));
  CHECK(refusal_of(tasks[0], worker(tasks, 2)).find("Worker 2 has joined twice") == 0);
}

TEST_CASE("if the rank that started the server exits, the port is released") {
  const auto tasks = dist_test::free_endpoints(2);
  Server server{tasks, 0, 20s};
  server.own.reset();
  server.finish();
  CHECK(server.problem == "abandoned");
  CHECK_NOTHROW(static_cast<void>(listen_at(tasks[0], {false, 0ms, 0ms})));
}

TEST_CASE("a start is read as written") {
  const WorldInfo start{"name", {"a", "b"}};
  const WorldInfo read = WorldInfo::from(start.record(), 2);
  CHECK(read.name == "name");
  CHECK(read.node_names == start.node_names);
  CHECK_THROWS_AS(static_cast<void>(WorldInfo::from(start.record(), 3)), FrameError);
  CHECK_THROWS_AS(static_cast<void>(WorldInfo::from(start.record(), 1)), FrameError);
}
