// Conjugate gradients for the Poisson equation on a square grid, for any strategy: examples 05 and 11. Each replica owns some
// rows of the grid; dot products are all-reduces; the solver's loop runs inside one replica function.
//
// Replicas may be threads of one process or of many, so they share only what the strategy shares: here what they exchange with
// their neighbours and reduce. A vector that a replica function captures exists once in each process, which under MultiWorker is not once for all.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/context/neighbor_exchange.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace poisson {

constexpr std::size_t side = 256;             // inner points per axis
constexpr double spacing = 1.0 / (side + 1);  // of the grid on the unit square
constexpr std::size_t stride = side + 2;      // a row with its two boundary points

/// y = A x: the five-point Laplacian times the squared spacing, with the sign that makes A positive definite.
struct Laplacian {
  const double* x;
  double* y;
  void operator()(std::size_t at) const { y[at] = 4 * x[at] - x[at - 1] - x[at + 1] - x[at - stride] - x[at + stride]; }
};

/// A replica's rows of the grid. Its vectors hold them between two more rows, those of its neighbours or the boundary.
struct Rows {
  dist::IndexRange range;  // among the inner rows of the whole grid

  [[nodiscard]] std::vector<double> vector() const { return std::vector<double>((range.size() + 2) * stride); }
  /// The elements of the rows themselves. The boundary points among them stay zero in every vector.
  [[nodiscard]] dist::IndexRange elements() const { return {stride, (range.size() + 1) * stride}; }
  /// The row in the whole grid, boundary included, and the column of an element.
  [[nodiscard]] std::size_t row(std::size_t at) const { return range.begin + at / stride; }
  [[nodiscard]] static std::size_t column(std::size_t at) { return at % stride; }
  [[nodiscard]] static bool inside(std::size_t at) { return column(at) != 0 && column(at) != stride - 1; }
};

// [neighbours]
/// Fetches the rows above and below those of this replica: its first row goes to the replica above, its last one to the
/// replica below, and theirs come back.
void fetch_neighbours(auto& replica, const Rows& rows, std::vector<double>& x) {
  const std::size_t id = replica.replica_id().index();
  const std::span<double> field{x};
  std::vector<dist::SendTo> sends;
  std::vector<dist::ReceiveFrom> receives;
  if (rows.range.begin > 0) {
    sends.emplace_back(id - 1, field.subspan(stride, stride));
    receives.emplace_back(id - 1, field.first(stride));
  }
  if (rows.range.end < side) {
    sends.emplace_back(id + 1, field.last(2 * stride).first(stride));
    receives.emplace_back(id + 1, field.last(stride));
  }
  replica.neighbor_exchange(sends, receives);
}
// [/neighbours]

double dot(auto& replica, const Rows& rows, const std::vector<double>& a, const std::vector<double>& b) {
  return replica.all_reduce(
      dist::sum, replica.transform_reduce(dist::sum, rows.elements(), [&](std::size_t at) { return a[at] * b[at]; }));
}

struct Solution {
  int iterations = 0;
  double largest_error = 0;  // in all rows
};

/// Solves -laplace(u) = f for the u = x(1-x) y(1-y) that is zero on the boundary, and compares with it.
template <class Strategy>
Solution solve(Strategy& strategy) {
  const auto hump = [](std::size_t index) {
    return static_cast<double>(index) * spacing * (1 - static_cast<double>(index) * spacing);
  };
  auto solutions = strategy.run([&](auto& replica) {
    const Rows rows{replica.shard(side)};
    std::vector<double> u = rows.vector(), r = u, p = u, q = u;  // this replica's own
    const auto mine = rows.elements();
    replica.for_each(mine, [&](std::size_t at) {
      if (rows.inside(at)) p[at] = r[at] = spacing * spacing * 2 * (hump(rows.column(at)) + hump(rows.row(at)));
    });

    Solution solution;
    double rr = dot(replica, rows, r, r);
    for (const double goal = 1e-26 * rr; rr > goal && solution.iterations < 2000; ++solution.iterations) {
      fetch_neighbours(replica, rows, p);
      replica.for_each(mine, [&, apply = Laplacian{p.data(), q.data()}](std::size_t at) {
        if (rows.inside(at)) apply(at);
      });
      const double alpha = rr / dot(replica, rows, p, q);
      replica.for_each(mine, [&](std::size_t at) {
        u[at] += alpha * p[at];
        r[at] -= alpha * q[at];
      });
      const double previous = rr;
      rr = dot(replica, rows, r, r);
      replica.for_each(mine, [&](std::size_t at) { p[at] = r[at] + rr / previous * p[at]; });
    }
    solution.largest_error =
        replica.all_reduce(dist::max, replica.transform_reduce(dist::max, mine, [&](std::size_t at) {
          return std::abs(u[at] - hump(rows.column(at)) * hump(rows.row(at)));
        }));
    return solution;
  });
  return strategy.local_results(solutions)[0];
}

}  // namespace poisson
