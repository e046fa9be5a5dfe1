// An HPC code without a neural network: conjugate gradients for the Poisson equation on a square grid, serial and on the
// threads of one process. Example 11 calls the same solver, conjugate_gradient.hpp, on several processes.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <dist/dist.hpp>

#include "check.hpp"
#include "conjugate_gradient.hpp"

int main() {
  dist::Default serial;
  dist::Mirrored<dist::SharedMemoryAllReduce> parallel;
  const poisson::Solution one = poisson::solve(serial);
  const poisson::Solution many = poisson::solve(parallel);
  std::printf("%s\n  %d iterations, largest error %.1e\n", serial.describe().c_str(), one.iterations,
              one.largest_error);
  std::printf("%s\n  %d iterations, largest error %.1e\n", parallel.describe().c_str(), many.iterations,
              many.largest_error);

  // The five-point formula is exact for quadratic functions, so only rounding and the solver's tolerance remain.
  check(one.largest_error < 1e-10 && many.largest_error < 1e-10, "the solution is the known one");
  check(std::abs(one.iterations - many.iterations) <= 2, "replicas take the same iterations, up to rounding");
}
