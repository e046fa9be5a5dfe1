// HPC without a neural network: conjugate gradients for the Poisson equation on a square grid, with all strategies
// for one process. Example 11 uses several processes.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <dist/dist.hpp>

#include "check.hpp"
#include "conjugate_gradient.hpp"
#include "quick.hpp"

template <class Strategy>
poisson::Solution solve_and_tell(Strategy&& strategy) {
  const poisson::Solution solution = quick() ? poisson::solve<64>(strategy) : poisson::solve<256>(strategy);
  std::printf("%s\n  %d iterations, largest error %.1e\n", strategy.describe().c_str(), solution.iterations,
              solution.largest_error);
  return solution;
}

int main() {
  const poisson::Solution serial = solve_and_tell(dist::Default{});
  for (const poisson::Solution& parallel :
       {solve_and_tell(dist::OneDevice<dist::Cpu>{}), solve_and_tell(dist::Mirrored<dist::ThreadAllReduce>{}),
        solve_and_tell(dist::Mirrored<dist::RingAllReduce>{3}), solve_and_tell(dist::CentralStorage<dist::Cpu>{2})}) {
    check(std::abs(serial.iterations - parallel.iterations) <= 2,
          "the number of iterations is the same up to rounding");
    // The five-point formula is exact for quadratic functions. Only rounding and the solver's tolerance remain.
    check(parallel.largest_error < 1e-10, "the solution equals the exact one");
  }
  check(serial.largest_error < 1e-10, "the solution equals the exact one");
}
