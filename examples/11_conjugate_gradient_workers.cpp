// Runs the solver of example 05 on several processes with two replicas each, and compares with a serial run.
//
//   mpirun -n 3 ./example_11_conjugate_gradient_workers
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <dist/dist.hpp>
#include <dist/multi_worker.hpp>

#include "check.hpp"
#include "conjugate_gradient.hpp"

int main() try {
  dist::MultiWorker<dist::RingAllReduce> workers{2};  // create it first: finds the other processes and connects to them
  dist::Default serial;
  const poisson::Solution many = poisson::solve<256>(workers);
  const poisson::Solution one = poisson::solve<256>(serial);
  if (workers.is_chief())
    std::printf("%s\n  %d iterations, largest error %.1e; alone %d iterations, %.1e\n", workers.describe().c_str(),
                many.iterations, many.largest_error, one.iterations, one.largest_error);

  check(one.largest_error < 1e-10 && many.largest_error < 1e-10, "the solution equals the exact one");
  check(std::abs(one.iterations - many.iterations) <= 2, "the number of iterations is the same up to rounding");
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
