// An MPI program that shares its communicator with the library: explicit time steps of the heat equation in a bar,
// divided among the ranks. The program keeps its own vectors and MPI calls.
//
//   mpirun -n 3 ./example_31_halo_in_mpi_code
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <span>
#include <vector>

#include <dist/comm/ring_all_reduce.hpp>
#include <dist/context/subgroup.hpp>
#include <dist/dist.hpp>
#include <dist/strategy/multi_worker.hpp>

#include "check.hpp"

int main(int argc, char** argv) {
  constexpr std::size_t cells = 240, most_steps = 5'000;
  int provided = 0, rank = 0, ranks = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  const std::size_t mine = cells / static_cast<std::size_t>(ranks);
  std::vector<double> u(mine + 2), next(mine + 2);          // cells 1 to mine, and one halo cell on each side
  if (rank == ranks - 1) u[mine + 1] = next[mine + 1] = 1;  // the hot end

  std::size_t steps = 0;
  double left_half = 0;
  {
    // [halo]
    dist::MultiWorker<dist::RingAllReduce> strategy{dist::mpi::ref(MPI_COMM_WORLD)};  // one replica in each process
    const auto taken = strategy.run([&](auto& replica) {
      const std::size_t id = replica.replica_id().index(), last = replica.num_replicas_in_sync() - 1;
      const std::span<double> cell{u};
      std::vector<dist::SendTo> sends;
      std::vector<dist::ReceiveFrom> receives;
      if (id > 0) {
        sends.emplace_back(id - 1, cell.subspan(1, 1));
        receives.emplace_back(id - 1, cell.subspan(0, 1));
      }
      if (id < last) {
        sends.emplace_back(id + 1, cell.subspan(mine, 1));
        receives.emplace_back(id + 1, cell.subspan(mine + 1, 1));
      }
      std::size_t step = 0;
      for (double change = 1; change > 1e-7 && step < most_steps; ++step) {
        replica.neighbor_exchange(sends, receives);  // instead of MPI_Sendrecv
        change = 0;
        for (std::size_t i = 1; i <= mine; ++i) {
          next[i] = u[i] + 0.4 * (u[i - 1] - 2 * u[i] + u[i + 1]);
          change = std::max(change, std::abs(next[i] - u[i]));
        }
        std::copy(next.begin() + 1, next.end() - 1, u.begin() + 1);
        change = replica.all_reduce(dist::max, change);  // instead of MPI_Allreduce
      }
      return step;
    });
    steps = strategy.local_results(taken)[0];
    // [/halo]

    // [split]
    const auto halves = strategy.run([&](auto& replica) {
      const bool is_left = replica.replica_id().index() < (replica.num_replicas_in_sync() + 1) / 2;
      const auto half = replica.split(/*color=*/is_left ? 0 : 1);
      double heat = 0;
      for (std::size_t i = 1; i <= mine; ++i) heat += u[i];
      return half.all_reduce(dist::sum, heat);  // over the replicas of this half
    });
    left_half = strategy.local_results(halves)[0];
    // [/split]
  }

  std::vector<double> bar(rank == 0 ? cells : 0);  // MPI as before, after the strategy or between two of its calls
  MPI_Gather(u.data() + 1, static_cast<int>(mine), MPI_DOUBLE, bar.data(), static_cast<int>(mine), MPI_DOUBLE, 0,
             MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("%d ranks, %zu steps, heat of the left half %.6f\n", ranks, steps, left_half);
    bool rises = true;
    for (std::size_t i = 1; i < bar.size(); ++i) rises = rises && bar[i] >= bar[i - 1];
    check(rises && bar.back() > 0.9, "heat flows from the hot end to the cold one");
    check(steps > 1'000, "the loop ends when the solution is steady");
  }
  MPI_Finalize();
}
