// A user's MPI program, with its own MPI and data that differ between processes.
#include <mpi.h>

#include <dist/multi_worker.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  // [own_mpi]
  MPI_Init(&argc, &argv);
  int rank = 0, processes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  std::vector<double> field(1000, rank + 1.0);  // this process's part of the field

  double norm = 0;
  {
    dist::MultiWorker<dist::RingAllReduce> strategy{dist::mpi::ref(MPI_COMM_WORLD)};  // one replica in each process
    const auto squares = strategy.run([&](auto& replica) {
      return replica.transform_reduce(dist::sum, {0, field.size()}, [&](std::size_t i) { return field[i] * field[i]; });
    });
    norm = std::sqrt(strategy.reduce(dist::sum, squares));  // the same number in every process
  }
  MPI_Finalize();  // after the strategy has ended
  // [/own_mpi]

  const double n = processes;  // 1000 (1 + 4 + ... + n^2)
  const bool right = std::abs(norm - std::sqrt(1000 * n * (n + 1) * (2 * n + 1) / 6)) < 1e-9 * norm;
  if (rank == 0) std::printf("%d processes, norm %g\n", processes, norm);
  return right ? 0 : 1;
}
