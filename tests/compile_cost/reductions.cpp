// A MultiWorker with as many pairs of element type and reduction as CALLS says, from 0 to 5.
#include <mpi.h>

#include <cstdio>

#include <dist/comm/ring_all_reduce.hpp>
#include <dist/dist.hpp>
#include <dist/strategy/multi_worker.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    dist::MultiWorker<dist::RingAllReduce> strategy{dist::mpi::ref(MPI_COMM_WORLD)};
    double a = argc;
    float b = 2;
    int c = argc;
    strategy.run([&]([[maybe_unused]] auto& replica) {
#if CALLS > 0
      a = replica.all_reduce(dist::sum, a);
#endif
#if CALLS > 1
      a = replica.all_reduce(dist::max, a);
#endif
#if CALLS > 2
      b = replica.all_reduce(dist::sum, b);
#endif
#if CALLS > 3
      c = replica.all_reduce(dist::min, c);
#endif
#if CALLS > 4
      b = replica.all_reduce(dist::mean, b);
#endif
    });
    std::printf("%g %g %d\n", a, static_cast<double>(b), c);
  }
  MPI_Finalize();
}
