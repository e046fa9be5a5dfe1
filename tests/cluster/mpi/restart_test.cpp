// Restarts a job after the loss of a worker, as a supervisor would: starts all processes again, unchanged.
#include <dist/cluster/mpi/hosted_world.hpp>

#include <doctest/doctest.h>

#include <signal.h>

#include <cstddef>
#include <string>
#include <vector>

#include <cluster/mpi/world_ranks.hpp>
#include <net/ports.hpp>
#include <support/processes.hpp>

using dist::HostedOptions;
using dist::HostedWorld;
using namespace dist_test;
using support::Processes;

namespace {

constexpr std::size_t ranks = 3;

HostedOptions options_for(const std::vector<dist::HostedTask>& tasks, std::size_t rank) {
  HostedOptions options;
  options.tasks = tasks;
  options.rank = rank;
  options.deadline = 60s;
  options.port_patience = 60s;
  return options;
}

}  // namespace

TEST_CASE(
    "a process that connects while the job runs is refused; after a loss all reconnect at the same addresses (spec "
    "O01, O02)") {
  const auto tasks = free_endpoints(ranks);
  for (const std::size_t victim : {0U, 1U}) {
    CAPTURE(victim);
    Notes up{ranks}, lost{ranks}, early{ranks};
    Processes job{ranks, [&](std::size_t rank) {
                    const HostedWorld world = join_and_initialise(options_for(tasks, rank));
                    MPI_Barrier(MPI_COMM_WORLD);
                    up.write(rank, "up");
                    const auto gone = await_loss(world);
                    lost.write(rank, gone ? dist::concat(gone->rank, " ", gone->why) : "nothing");
                    return 3;
                  }};
    for (int i = 0; i < 60'000 && (up[0].empty() || up[1].empty() || up[2].empty()); ++i) usleep(1000);
    Processes comers{ranks, [&](std::size_t rank) {
                       HostedOptions options = options_for(tasks, rank);
                       options.port_patience = 300ms;
                       early.write(rank, try_to_join(options));
                       return 0;
                     }};
    CHECK(comers.wait(120s) == std::vector<int>(ranks, 0));
    CHECK(contains(early[0],
                   dist::concat("rendezvous: This task cannot listen at its own address ", to_string(tasks[0]))));
    for (const std::size_t rank : {1U, 2U}) {
      CHECK(contains(early[rank], dist::concat("rendezvous: Worker ", rank, " on host '")));
      CHECK(contains(early[rank], "' cannot join a running job (all tasks of the job have already joined)"));
    }
    // Some reconnect before the job has ended, as on a busy machine.
    Processes again{ranks, [&](std::size_t rank) {
                      HostedWorld world = join_and_initialise(options_for(tasks, rank));
                      int sum = 0;
                      const int mine = static_cast<int>(rank) + 1;
                      MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
                      world.goodbye();
                      MPI_Finalize();
                      return sum == 6 ? 0 : 1;
                    }};
    usleep(200'000);
    kill(job[victim], SIGKILL);
    const std::vector<int> statuses = job.wait(120s);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      CHECK(statuses[rank] == (rank == victim ? 128 + SIGKILL : 3));
      if (rank != victim) CHECK(lost[rank] == dist::concat(victim, " its process exited unexpectedly"));
    }

    CHECK(again.wait(120s) == std::vector<int>(ranks, 0));
  }
}
