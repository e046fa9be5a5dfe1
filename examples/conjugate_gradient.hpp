// Conjugate gradients for the Poisson equation on a square grid with any strategy. Each replica owns some rows of the
// grid. Dot products are all-reduces. The loop runs inside one replica function.
//
// Replicas may be in several processes or on GPUs, so they communicate only through the strategy. Fields are buffers
// of the strategy, in the memory of each replica's device. Loop bodies are function objects with pointers to the
// fields, which can be copied to the device.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <dist/context/subgroup.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>

namespace poisson {

/// A replica's rows of a grid on the unit square with `side` inner points per axis. A field stores them contiguously
/// with their boundary points, plus a halo row before and after: the neighbour's row or the boundary.
template <std::size_t side>
struct Rows {
  static constexpr double spacing = 1.0 / (side + 1);  // of the grid
  static constexpr std::size_t stride = side + 2;

  dist::IndexRange range;  // among the inner rows of the whole grid

  /// Range of the elements of the rows. The boundary points among them stay zero in every field.
  [[nodiscard]] dist::IndexRange elements() const { return {stride, (range.size() + 1) * stride}; }
  [[nodiscard]] DIST_HD static bool inside(std::size_t at) { return at % stride != 0 && at % stride != side + 1; }

  /// x (1 - x) and y (1 - y) at an element.
  [[nodiscard]] DIST_HD static double hump_x(std::size_t at) { return hump(at % stride); }
  [[nodiscard]] DIST_HD double hump_y(std::size_t at) const { return hump(range.begin + at / stride); }

 private:
  [[nodiscard]] DIST_HD static double hump(std::size_t index) {
    return static_cast<double>(index) * spacing * (1 - static_cast<double>(index) * spacing);
  }
};

/// Sets r = p = f times the squared spacing, for the solution x (1 - x) y (1 - y).
template <std::size_t side>
struct Begin {
  Rows<side> rows;
  double* r;
  double* p;
  DIST_HD void operator()(std::size_t at) const {
    if (rows.inside(at)) p[at] = r[at] = rows.spacing * rows.spacing * 2 * (rows.hump_x(at) + rows.hump_y(at));
  }
};

/// Computes y = A x with the five-point Laplacian times the squared spacing. Its sign makes A positive definite.
template <std::size_t side>
struct Laplacian {
  const double* x;
  double* y;
  DIST_HD void operator()(std::size_t at) const {
    constexpr std::size_t stride = Rows<side>::stride;
    if (Rows<side>::inside(at)) y[at] = 4 * x[at] - x[at - 1] - x[at + 1] - x[at - stride] - x[at + stride];
  }
};

/// Takes a step of length alpha along p, and updates the residual.
struct Advance {
  double alpha;
  const double* p;
  const double* q;
  double* u;
  double* r;
  DIST_HD void operator()(std::size_t at) const {
    u[at] += alpha * p[at];
    r[at] -= alpha * q[at];
  }
};

/// Computes the next search direction.
struct Turn {
  double beta;
  const double* r;
  double* p;
  DIST_HD void operator()(std::size_t at) const { p[at] = r[at] + beta * p[at]; }
};

struct Product {
  const double* a;
  const double* b;
  DIST_HD double operator()(std::size_t at) const { return a[at] * b[at]; }
};

/// Absolute difference between u and the exact solution.
template <std::size_t side>
struct Error {
  Rows<side> rows;
  const double* u;
  DIST_HD double operator()(std::size_t at) const { return std::abs(u[at] - rows.hump_x(at) * rows.hump_y(at)); }
};

// [neighbours]
/// Exchanges halo rows: sends the first row to the replica above and the last one to the replica below, and receives
/// theirs.
template <std::size_t side>
void fetch_neighbours(auto& replica, const Rows<side>& rows, const auto& field) {
  const std::size_t id = replica.replica_id().index();
  const std::size_t count = rows.range.size();
  const auto row = [&](std::size_t number) { return field.subspan(number * rows.stride, rows.stride); };
  std::vector<dist::SendTo> sends;
  std::vector<dist::ReceiveFrom> receives;
  if (rows.range.begin > 0) {
    sends.emplace_back(id - 1, row(1));
    receives.emplace_back(id - 1, row(0));
  }
  if (rows.range.end < side) {
    sends.emplace_back(id + 1, row(count));
    receives.emplace_back(id + 1, row(count + 1));
  }
  replica.neighbor_exchange(sends, receives);
}
// [/neighbours]

/// Dot product over the elements of all replicas.
double dot(auto& replica, const dist::IndexRange& elements, const double* a, const double* b) {
  return replica.all_reduce(dist::sum, replica.transform_reduce(dist::sum, elements, Product{a, b}));
}

struct Solution {
  int iterations = 0;
  double largest_error = 0;  // over all rows
};

/// Solves -laplace(u) = f for the exact solution u = x(1-x) y(1-y), and computes the error.
template <std::size_t side, class Strategy>
Solution solve(Strategy& strategy) {
  const dist::Shape shape{(side / strategy.num_replicas_in_sync() + 3) * Rows<side>::stride};
  const auto field_u = strategy.template buffer<double>(shape, "u");  // all zero at first
  const auto field_r = strategy.template buffer<double>(shape, "r");
  const auto field_p = strategy.template buffer<double>(shape, "p");
  const auto field_q = strategy.template buffer<double>(shape, "q");

  auto solutions = strategy.run([&](auto& replica) {
    const Rows<side> rows{replica.shard(side)};
    const auto mine = rows.elements();
    double* const u = field_u.component(replica).data();
    double* const r = field_r.component(replica).data();
    double* const p = field_p.component(replica).data();
    double* const q = field_q.component(replica).data();
    replica.for_each(mine, Begin<side>{rows, r, p});

    Solution solution;
    double rr = dot(replica, mine, r, r);
    for (const double goal = 1e-26 * rr; rr > goal && solution.iterations < 2000; ++solution.iterations) {
      fetch_neighbours(replica, rows, field_p.component(replica));
      replica.for_each(mine, Laplacian<side>{p, q});
      const double alpha = rr / dot(replica, mine, p, q);
      replica.for_each(mine, Advance{alpha, p, q, u, r});
      const double previous = rr;
      rr = dot(replica, mine, r, r);
      replica.for_each(mine, Turn{rr / previous, r, p});
    }
    solution.largest_error =
        replica.all_reduce(dist::max, replica.transform_reduce(dist::max, mine, Error<side>{rows, u}));
    return solution;
  });
  return strategy.local_results(solutions)[0];
}

}  // namespace poisson
