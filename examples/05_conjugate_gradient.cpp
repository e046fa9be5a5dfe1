// An HPC code without a neural network: conjugate gradients for the Poisson equation on a square grid. Each replica owns some
// rows of the grid; dot products are all-reduces; the solver's loop runs inside one replica function.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dist/dist.hpp>

#include "check.hpp"

namespace {

constexpr std::size_t side = 256;             // inner points per axis
constexpr double spacing = 1.0 / (side + 1);  // of the grid on the unit square
constexpr std::size_t stride = side + 2;      // a row with its two boundary points
constexpr std::size_t points = stride * (side + 2);

/// y = A x: the five-point Laplacian times the squared spacing, with the sign that makes A positive definite.
struct Laplacian {
  const double* x;
  double* y;
  void operator()(std::size_t at) const { y[at] = 4 * x[at] - x[at - 1] - x[at + 1] - x[at - stride] - x[at + stride]; }
};

/// The grid points of the rows that this replica owns. The boundary points among them stay zero in every vector.
dist::IndexRange owned(auto& replica) {
  const dist::IndexRange rows = replica.shard(side);
  return {(rows.begin + 1) * stride, (rows.end + 1) * stride};
}

bool inside(std::size_t at) {
  const std::size_t column = at % stride;
  return column != 0 && column != stride - 1;
}

double dot(auto& replica, const std::vector<double>& a, const std::vector<double>& b) {
  return replica.all_reduce(
      dist::sum, replica.transform_reduce(dist::sum, owned(replica), [&](std::size_t at) { return a[at] * b[at]; }));
}

struct Solution {
  int iterations = 0;
  double largest_error = 0;
};

/// Solves -laplace(u) = f for the u = x(1-x) y(1-y) that is zero on the boundary, and compares with it.
template <class Strategy>
Solution solve(Strategy& strategy) {
  const auto hump = [](std::size_t index) {
    return static_cast<double>(index) * spacing * (1 - static_cast<double>(index) * spacing);
  };
  std::vector<double> u(points), r(points), p(points), q(points);  // shared: a replica writes its own rows only

  auto solutions = strategy.run([&](auto& replica) {
    const auto mine = owned(replica);
    replica.for_each(mine, [&](std::size_t at) {
      if (inside(at)) p[at] = r[at] = spacing * spacing * 2 * (hump(at % stride) + hump(at / stride));
    });

    Solution solution;
    double rr = dot(replica, r, r);
    for (const double goal = 1e-26 * rr; rr > goal && solution.iterations < 2000; ++solution.iterations) {
      replica.barrier();  // the neighbours' rows of p are read next
      replica.for_each(mine, [&, apply = Laplacian{p.data(), q.data()}](std::size_t at) {
        if (inside(at)) apply(at);
      });
      const double alpha = rr / dot(replica, p, q);
      replica.for_each(mine, [&](std::size_t at) {
        u[at] += alpha * p[at];
        r[at] -= alpha * q[at];
      });
      const double previous = rr;
      rr = dot(replica, r, r);
      replica.for_each(mine, [&](std::size_t at) { p[at] = r[at] + rr / previous * p[at]; });
    }
    solution.largest_error =
        replica.all_reduce(dist::max, replica.transform_reduce(dist::max, mine, [&](std::size_t at) {
          return std::abs(u[at] - hump(at % stride) * hump(at / stride));
        }));
    return solution;
  });
  return strategy.local_results(solutions)[0];
}

}  // namespace

int main() {
  dist::Default serial;
  dist::Mirrored<dist::SharedMemoryAllReduce> parallel;
  const Solution one = solve(serial);
  const Solution many = solve(parallel);
  std::printf("%s\n  %d iterations, largest error %.1e\n", serial.describe().c_str(), one.iterations,
              one.largest_error);
  std::printf("%s\n  %d iterations, largest error %.1e\n", parallel.describe().c_str(), many.iterations,
              many.largest_error);

  // The five-point formula is exact for quadratic functions, so only rounding and the solver's tolerance remain.
  check(one.largest_error < 1e-10 && many.largest_error < 1e-10, "the solution is the known one");
  check(std::abs(one.iterations - many.iterations) <= 2, "replicas take the same iterations, but for rounding");
}
