#include <dist/cluster/mpi/node_server.hpp>

#include <doctest/doctest.h>

#include <string>

#include <cluster/mpi/world_ranks.hpp>
#include <net/pair.hpp>
#include <net/ports.hpp>
#include <support/processes.hpp>

using namespace dist_test;
using dist::detail::NodeHandshake;
using dist::detail::NodeServer;
using dist::detail::WorldFrame;
using dist::io::Descriptor;
using dist::net::Connection;
using dist::net::Frame;

namespace {

/// The server process of a world of `tasks` tasks, and the connection of rank 0 to it.
struct Served {
  explicit Served(std::size_t tasks, milliseconds deadline = 20s, milliseconds handshake = 3s) {
    options.tasks = free_endpoints(tasks);
    options.handshake = handshake;
    options.deadline = deadline;
    options.grace = 300ms;
    auto [here, there] = socket_pair();
    rank = Connection{std::move(here), dist::detail::longest_lifeline_frame};
    process.emplace(1, [&, server = there.get()](std::size_t) {
      rank.close();
      Descriptor listening = dist::net::listen_at(options.tasks[0], {});
      return NodeServer{options, std::move(listening), Descriptor{dup(server)}}.run();
    });
  }
  /// Returns the next frame of the server, except reports of missing tasks; type 0 if it exits without one.
  Frame next() {
    for (;;) {
      const bool alive = rank.receive();
      while (std::optional<Frame> frame = rank.next())
        if (frame->type != static_cast<std::uint16_t>(WorldFrame::waiting)) return *frame;
      if (!alive) return {};
      pollfd entry = rank.poll_entry();
      poll(&entry, 1, 1000);
    }
  }
  void say(WorldFrame frame) { rank.send(static_cast<std::uint16_t>(frame), {}); }
  int status() { return process->wait()[0]; }

  dist::HostedOptions options;
  Connection rank;
  std::optional<support::Processes> process;
};

}  // namespace

TEST_CASE("a rank receives its variables, works and leaves, and the server exits orderly") {
  Served served{1};
  const Frame frame = served.next();
  CHECK(frame.type == static_cast<std::uint16_t>(WorldFrame::environment));
  support::Processes client{1, [&](std::size_t) {
                              dist::detail::LaunchEnvironment environment;
                              for (const std::string& variable : NodeHandshake::from(frame.payload).variables)
                                environment.set(variable);
                              pmix_proc_t me;
                              return PMIx_Init(&me, nullptr, 0) == PMIX_SUCCESS && me.rank == 0 &&
                                             PMIx_Finalize(nullptr, 0) == PMIX_SUCCESS
                                         ? 0
                                         : 1;
                            }};
  served.say(WorldFrame::initialised);
  CHECK(client.wait() == std::vector<int>{0});
  served.say(WorldFrame::goodbye);
  served.rank.close();
  CHECK(served.status() == 0);
}

TEST_CASE("a rank that leaves without a goodbye ends the server with status 1") {
  Served served{1};
  CHECK(served.next().type == static_cast<std::uint16_t>(WorldFrame::environment));
  served.rank.close();
  CHECK(served.status() == 1);
}

TEST_CASE("a silent connection to libpmix does not delay the server of a lost rank") {
  Served served{1, 20s, 60s};
  const Frame frame = served.next();
  REQUIRE(frame.type == static_cast<std::uint16_t>(WorldFrame::environment));
  const Descriptor somebody = mute_connection(NodeHandshake::from(frame.payload).variables);
  const auto start = std::chrono::steady_clock::now();
  served.rank.close();
  CHECK(served.status() == 1);
  CHECK(seconds_since(start) < 15);
}

TEST_CASE("a goodbye without MPI_Finalize is not an orderly exit") {
  Served served{1, 500ms};
  CHECK(served.next().type == static_cast<std::uint16_t>(WorldFrame::environment));
  served.say(WorldFrame::goodbye);
  CHECK(served.status() == 1);  // because it has not left MPI_Init at the deadline
}

TEST_CASE("a missing task is reported, and the server exits") {
  Served served{2, 200ms};
  const Frame frame = served.next();
  REQUIRE(frame.type == static_cast<std::uint16_t>(WorldFrame::failed));
  CHECK(dist::detail::WorldFailure::from(frame.payload).text.problem ==
        dist::concat("Worker 1 at ", to_string(served.options.tasks[1]), " has not joined within 0.2 s"));
  served.rank.close();
  CHECK(served.status() == 1);
}

TEST_CASE("if the rank exits before the others connect, the server exits at once") {
  Served served{2};
  served.rank.close();
  CHECK(served.status() == 1);
}

TEST_CASE("a process that connects while the job runs is refused with the reason") {
  Served served{1};
  CHECK(served.next().type == static_cast<std::uint16_t>(WorldFrame::environment));
  const auto& tasks = served.options.tasks;
  dist::net::Dialer late{
      tasks[0],
      {dist::net::Handshake::Role::worker, 0, 1, dist::net::list_checksum(tasks, ""), "host", dist::net::machine_id()},
      {}};
  CHECK_THROWS_WITH_AS(static_cast<void>(dial(late, "The server", 20s, dist::net::Deadline::in(20s))),
                       "Worker 0 on host 'host' cannot join a running job (all tasks of the job have already joined). "
                       "Start all processes of a job together, each with its own index.",
                       dist::RendezvousError);
}
