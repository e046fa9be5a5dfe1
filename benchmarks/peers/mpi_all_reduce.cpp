// MPI_Allreduce with the same timing as ours. Compiled with Open MPI as bench_openmpi and with MPICH as bench_mpich.
// Start it with the matching launcher, for example
//
//   mpiexec.openmpi -np 2 --bind-to core bench_openmpi [-i]
//   mpiexec.hydra -launcher fork -np 2 -bind-to core bench_mpich [-i]
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "../support/aligned_memory.hpp"
#include "../support/collective_options.hpp"
#include "../support/collective_table.hpp"
#include "../support/collective_timing.hpp"

namespace {

template <class T>
MPI_Datatype datatype() {
  return std::is_same_v<T, float> ? MPI_FLOAT : std::is_same_v<T, double> ? MPI_DOUBLE : MPI_INT;
}

template <class T>
struct Rank {
  std::size_t rank, ranks;
  bool is_sum, in_place;
  std::span<T> input, output;  // equal if in place

  void write_input(unsigned round) { bench::write_input(input, rank, round); }
  void all_reduce() {
    MPI_Allreduce(in_place ? MPI_IN_PLACE : input.data(), output.data(), static_cast<int>(output.size()), datatype<T>(),
                  is_sum ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  void max(std::span<double> times) {
    MPI_Allreduce(MPI_IN_PLACE, times.data(), static_cast<int>(times.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  [[nodiscard]] std::size_t count_wrong(unsigned round) const {
    return bench::count_wrong(std::span<const T>{output}, is_sum, ranks, round);
  }
};

std::string library() {
#if defined(OPEN_MPI)
  return "Open MPI " + std::to_string(OMPI_MAJOR_VERSION) + "." + std::to_string(OMPI_MINOR_VERSION) + "." +
         std::to_string(OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
  return "MPICH " MPICH_VERSION;
#else
  return "MPI";
#endif
}

template <class T>
int measure(const bench::CollectiveOptions& options, std::size_t rank, std::size_t ranks) {
  const std::size_t most = options.sizes.back() / sizeof(T);
  const bench::AlignedMemory<T> input{most}, output{options.in_place ? 0 : most};
  if (rank != 0) std::freopen("/dev/null", "w", stdout);  // only rank 0 prints the table
  bench::CollectiveTable table{library() + (options.in_place ? ", in place" : ", out of place"), options, ranks};
  for (const std::size_t bytes : options.sizes) {
    const std::size_t count = bytes / sizeof(T);
    if (count == 0) continue;
    Rank<T> self{rank,
                 ranks,
                 options.op == "sum",
                 options.in_place,
                 input.first(count),
                 (options.in_place ? input : output).first(count)};
    table.add(count * sizeof(T), count, bench::time_all_reduce(self, count * sizeof(T), options.duration), "");
  }
  return rank == 0 ? table.finish() : 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bench::CollectiveOptions options = bench::parse_collective_options(argc, argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int status = bench::with_element_type(options, [&]<class T>() {
    return measure<T>(options, static_cast<std::size_t>(rank), static_cast<std::size_t>(ranks));
  });
  MPI_Finalize();
  return status;
}
