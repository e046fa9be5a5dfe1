/// Two hosts on this machine: network namespaces with their own names and addresses, removed with the test. Skipped
/// without the permission to create them.
#include <dist/cluster/mpi/hosted_world.hpp>

#include <doctest/doctest.h>

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <dist/cluster/address_exchange.hpp>

#include <cluster/mpi/world_ranks.hpp>
#include <support/processes.hpp>
#include <support/two_hosts.hpp>

using namespace dist_test;
using support::Processes;
using support::TwoHosts;

namespace {

/// Exits the program before any test if network namespaces cannot be created.
struct NeedsHosts {
  NeedsHosts() {
    if (TwoHosts{}.made) return;
    std::printf("skipped: this user may make no network namespaces, or the program ip is missing\n");
    std::fflush(stdout);
    std::_Exit(77);
  }
};
const NeedsHosts needs_hosts;

constexpr std::chrono::seconds longest{150};  // for all processes of a test

/// Two tasks on each host, alternating, so that ranks of a node are not consecutive.
dist::HostedOptions options_for(std::size_t rank) {
  dist::HostedOptions options;
  for (std::size_t task = 0; task < 4; ++task)
    options.tasks.push_back({TwoHosts::address(task % 2), dist::concat(23450 + task)});
  options.rank = rank;
  options.deadline = 90s;
  options.secret = "0123456789abcdef0123456789abcdef";
  return options;
}

}  // namespace

TEST_CASE("two tasks on each of two hosts form one world, with shared memory on each host") {
  const TwoHosts hosts;
  // An address that both hosts have, like Docker's bridge; data sent there does not reach the other host.
  for (const std::size_t host : {0U, 1U}) {
    REQUIRE(hosts.on(host, "link add docker0 type bridge"));
    REQUIRE(hosts.on(host, "addr add 172.17.0.1/16 dev docker0"));
    REQUIRE(hosts.on(host, "link set docker0 up"));
  }
  const auto start = std::chrono::steady_clock::now();
  Processes processes{4, [&](std::size_t task) {
                        hosts.enter(task % 2);
                        dist::HostedWorld world = join_and_initialise(options_for(task));
                        int rank = 0, size = 0, node_size = 0;
                        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                        MPI_Comm_size(MPI_COMM_WORLD, &size);
                        MPI_Comm node;
                        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
                        MPI_Comm_size(node, &node_size);
                        int lowest = 0;
                        MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, node);
                        std::vector<int> sums(100'000, rank + 1);
                        MPI_Allreduce(MPI_IN_PLACE, sums.data(), 100'000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
                        bool right = rank == static_cast<int>(task) && size == 4 && node_size == 2 &&
                                     lowest == static_cast<int>(task % 2);
                        for (const int sum : sums) right = right && sum == 10;
                        std::printf("rank %d: done after %.2f s\n", rank, seconds_since(start));
                        MPI_Finalize();
                        world.goodbye();
                        return right ? 0 : 1;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>(4, 0));
}

namespace {

/// Four tasks on two hosts with only a rendezvous address form a world. `meet(options, task)` sets it, and
/// `is_expected` checks the addresses.
template <class Meet, class IsExpected>
void check_meeting(const TwoHosts& hosts, Meet&& meet, IsExpected&& is_expected) {
  Processes processes{4, [&](std::size_t task) {
                        hosts.enter(task % 2);
                        dist::HostedOptions options = options_for(task);
                        dist::net::AddressServerOptions meeting;
                        meeting.place = options.tasks[0];
                        meeting.rank = task;
                        meeting.world = 4;
                        meeting.secret = options.secret;
                        meeting.deadline = 60s;
                        meeting.workers_elsewhere = true;
                        meet(meeting, task);
                        options.tasks = exchange_addresses(meeting);
                        const bool right = options.tasks.size() == 4 && is_expected(options.tasks);
                        dist::HostedWorld world = join_and_initialise(options);
                        int one = 1, sum = 0;
                        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
                        MPI_Finalize();
                        world.goodbye();
                        return right && sum == 4 ? 0 : 1;
                      }};
  CHECK(processes.wait(longest) == std::vector<int>(4, 0));
}

/// A process on a host that listens at one of its ports, and never replies.
Processes mute_listener(const TwoHosts& hosts, std::size_t host, const char* port, Notes& notes) {
  return {1, [&hosts, host, port, &notes](std::size_t) {
            hosts.enter(host);
            const auto socket = dist::net::listen_at({TwoHosts::address(host), port}, {});
            notes.write(host, "listens");
            for (;;) pause();
            return 0;
          }};
}

}  // namespace

TEST_CASE("tasks with only the first one's address form one world on two hosts") {
  for (const bool knows_loopback_only : {false, true}) {  // like the master of Kubeflow's PyTorchJob
    CAPTURE(knows_loopback_only);
    const TwoHosts hosts;  // new hosts, without ports of an earlier world
    check_meeting(
        hosts,
        [&](dist::net::AddressServerOptions& meeting, std::size_t task) {
          if (knows_loopback_only && task == 0) meeting.place.host = "localhost";
        },
        [](const std::vector<dist::HostedTask>& tasks) {
          bool right = true;
          for (std::size_t each = 0; each < 4; ++each)
            right =
                right && tasks[each] == dist::HostedTask{TwoHosts::address(each % 2), dist::concat(23450 + each / 2)};
          return right;
        });
  }
}

TEST_CASE("tasks connect at the host of torchrun's store, which may not be the first task's, with ports in use") {
  const TwoHosts hosts;
  Notes notes{2};
  const Processes at_meeting = mute_listener(hosts, 1, "23450", notes);
  const Processes at_other = mute_listener(hosts, 0, "23450", notes);
  for (int i = 0; i < 60'000 && (notes[0].empty() || notes[1].empty()); ++i) usleep(1000);
  check_meeting(
      hosts,
      [](dist::net::AddressServerOptions& meeting, std::size_t task) {
        meeting.place.host = task == 1 ? "localhost" : TwoHosts::address(1);
        meeting.local_rank = task / 2;
        meeting.agent_has_place = true;
        meeting.other_ports = {23470};
        meeting.handshake = 500ms;
      },
      [](const std::vector<dist::HostedTask>& tasks) {
        return tasks[0] == dist::HostedTask{TwoHosts::address(0), "23451"} &&
               tasks[1] == dist::HostedTask{TwoHosts::address(1), "23470"} &&
               tasks[2] == dist::HostedTask{TwoHosts::address(0), "23452"} &&
               tasks[3] == dist::HostedTask{TwoHosts::address(1), "23471"};
      });
}

TEST_CASE("a killed rank is reported on both hosts") {
  const TwoHosts hosts;
  for (const std::size_t victim : {0U, 3U}) {
    CAPTURE(victim);
    Notes notes{4};
    Processes processes{4, [&](std::size_t rank) {
                          hosts.enter(rank % 2);
                          const dist::HostedWorld world = join_and_initialise(options_for(rank));
                          MPI_Barrier(MPI_COMM_WORLD);
                          if (rank == victim) {
                            notes.write(rank, now_as_text());
                            raise(SIGKILL);
                          }
                          const auto lost = await_loss(world);
                          if (!lost) return 1;
                          std::printf("rank %zu: worker %zu seen lost after %.4f s\n", rank, lost->rank,
                                      seconds_since(notes[victim]));
                          notes.write(rank, dist::concat(lost->rank, " ", lost->host));
                          return 3;
                        }};
    const std::vector<int> statuses = processes.wait(longest);
    for (std::size_t rank = 0; rank < 4; ++rank)
      if (rank != victim) {
        CHECK(statuses[rank] == 3);
        CHECK(notes[rank] == dist::concat(victim, " ", TwoHosts::address(victim % 2)));
      }
  }
}

TEST_CASE("a silent host is a loss on both sides") {
  const TwoHosts hosts;
  Notes notes{5};
  Processes processes{4, [&](std::size_t rank) {
                        hosts.enter(rank % 2);
                        dist::HostedOptions options = options_for(rank);
                        options.silence = 10s;
                        const dist::HostedWorld world = join_and_initialise(options);
                        MPI_Barrier(MPI_COMM_WORLD);
                        if (rank == 0) notes.write(4, "up");
                        const auto lost = await_loss(world);
                        if (lost) notes.write(rank, dist::concat(lost->rank, " ", lost->why));
                        return 3;
                      }};
  for (int i = 0; i < 90'000 && notes[4].empty(); ++i) usleep(1000);
  const auto start = std::chrono::steady_clock::now();
  CHECK(hosts.on(1, "link set dist0 down"));
  processes.wait(longest);
  std::printf("partition: all four knew after %.2f s, the limit of silence being 10 s\n", seconds_since(start));
  for (std::size_t rank = 0; rank < 4; ++rank)
    CHECK(notes[rank] == dist::concat(rank % 2 == 0 ? 1 : 0, " its server has been silent for 10 s"));
}

TEST_CASE("a partition that ends within the silence limit is not a loss") {
  const TwoHosts hosts;
  Notes notes{5};
  Processes processes{4, [&](std::size_t rank) {
                        hosts.enter(rank % 2);
                        dist::HostedWorld world = join_and_initialise(options_for(rank));  // 30 s of silence
                        MPI_Barrier(MPI_COMM_WORLD);
                        if (rank == 0) notes.write(4, "up");
                        for (int i = 0; i < 90'000 && notes[3] != "healed"; ++i) usleep(1000);
                        int sum = 1;
                        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
                        const auto lost = world.lost_peer();
                        world.goodbye();
                        MPI_Finalize();
                        return sum == 4 && (!lost || lost->in_order) ? 0 : 1;
                      }};
  for (int i = 0; i < 90'000 && notes[4].empty(); ++i) usleep(1000);
  CHECK(hosts.on(1, "link set dist0 down"));
  usleep(2'000'000);
  CHECK(hosts.on(1, "link set dist0 up"));
  notes.write(3, "healed");
  CHECK(processes.wait(longest) == std::vector<int>(4, 0));
}

TEST_CASE("a missing task is named on both hosts") {
  const TwoHosts hosts;
  Notes notes{4};
  Processes processes{4, [&](std::size_t rank) {
                        if (rank == 3) return 0;
                        hosts.enter(rank % 2);
                        dist::HostedOptions options = options_for(rank);
                        options.deadline = 5s;
                        notes.write(rank, try_to_join(options));
                        return 0;
                      }};
  processes.wait(longest);
  for (std::size_t rank = 0; rank < 3; ++rank)
    CHECK(contains(notes[rank], "deadline: Worker 3 at 10.213.77.2:23453 has not joined within 5 s"));
}

TEST_CASE("listening at another host's address is refused") {
  const TwoHosts hosts;
  Notes notes{1};
  Processes processes{1, [&](std::size_t) {
                        hosts.enter(1);
                        dist::HostedOptions options = options_for(0);
                        options.deadline = 100ms;
                        notes.write(0, try_to_join(options));
                        return 0;
                      }};
  processes.wait(longest);
  CHECK(contains(notes[0], "rendezvous: This task cannot listen at its own address 10.213.77.1:23450 (10.213.77.1: "));
  CHECK(contains(notes[0], "has the right index"));
}
