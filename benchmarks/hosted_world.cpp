// Cost of an MPI world, started by mpirun or hosted from TF_CONFIG alone: start-up time, and one-way messages between
// ranks 0 and 1 (minimum of 200 rounds).
//
//   mpirun -n 2 bench_hosted_world
//   dist-run -n 2 bench_hosted_world
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

#include <dist/cluster/mpi/world_host.hpp>
#include <dist/cluster/tf_config_resolver.hpp>

#include "support/arguments.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Returns the seconds of half a round trip: the minimum over 200 rounds.
double one_way(MPI_Comm comm, int rank, std::size_t bytes, int repetitions) {
  std::vector<char> buffer(bytes);
  const int count = static_cast<int>(bytes);
  double best = 1e9;
  for (int round = 0; round < 200; ++round) {
    MPI_Barrier(comm);
    const auto start = Clock::now();
    for (int i = 0; i < repetitions && rank < 2; ++i) {
      if (rank == 0) MPI_Send(buffer.data(), count, MPI_BYTE, 1, 0, comm);
      MPI_Recv(buffer.data(), count, MPI_BYTE, 1 - rank, 0, comm, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(buffer.data(), count, MPI_BYTE, 0, 0, comm);
    }
    best = std::min(best, seconds_since(start) / (2.0 * repetitions));
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 0, "",
                                   "Times start-up, latency and bandwidth of a multi-process world."};
  const auto start = Clock::now();
  const dist::WorkerGroup world{dist::TfConfigResolver{}, std::chrono::seconds{60}};
  if (world.is_alone()) {
    std::fprintf(stderr, "One process is not enough. Start at least two, with mpirun or TF_CONFIG.\n");
    return 2;
  }
  const MPI_Comm comm = world.comm().get();
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Barrier(comm);
  const double up = seconds_since(start);
  if (size > 1) {
    const double latency = one_way(comm, rank, 8, 1000);
    const double bandwidth = 4.0 * 1024 * 1024 / one_way(comm, rank, std::size_t{4} << 20, 10);
    if (rank == 0)
      std::printf("ranks of %s, %d: up in %.2f s, 8 B in %.3f us, 4 MiB at %.2f GB/s\n", world.source().c_str(), size,
                  up, latency * 1e6, bandwidth / 1e9);
  }
  return 0;
}
