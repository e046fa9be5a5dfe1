// A solver in a single XLA program: least squares by conjugate gradients, with the rows divided among the replicas.
// The PJRT plugin DIST_PJRT_PLUGIN determines the device; for CPUs use PyPI's xla-cpu-pjrt.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <tuple>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/hlo/collectives.hpp>
#include <dist/hlo/program.hpp>
#include <dist/hlo/scan.hpp>

#include "check.hpp"

namespace hlo = dist::hlo;

constexpr std::size_t unknowns = 16;
template <std::size_t... Extents>
using Doubles = hlo::Traced<double, Extents...>;

// [solver]
// Minimizes |A x - b| by conjugate gradients on the normal equations. Each replica has some rows of A and b; p, r and
// x are equal on all. Called once, for tracing.
template <std::size_t Rows>
auto solve(Doubles<Rows, unknowns> a, Doubles<Rows> b) {
  const auto dot = [](Doubles<unknowns> u, Doubles<unknowns> v) { return hlo::reduce(dist::sum, u * v); };
  const auto transposed_times = [&](Doubles<Rows> y) { return hlo::all_reduce(dist::sum, hlo::contract<0, 0>(a, y)); };

  const Doubles<unknowns> gradient = transposed_times(b);
  const Doubles<> enough = 1e-24 * dot(gradient, gradient);
  const auto goes_on = [&](auto, auto r, auto, auto iteration) {
    return (dot(r, r) > enough) & (iteration < 10 * unknowns);
  };
  const auto pass = [&](auto x, auto r, auto p, auto iteration) {
    const Doubles<unknowns> product = transposed_times(hlo::contract<1, 0>(a, p));
    const Doubles<> step = dot(r, r) / dot(p, product);
    const Doubles<unknowns> rest = r - step * product;
    return std::tuple{x + step * p, rest, rest + dot(rest, rest) / dot(r, r) * p, iteration + 1};
  };
  const auto [solution, residual, direction, iterations] =
      hlo::loop(goes_on, pass, Doubles<unknowns>{0}, gradient, gradient, hlo::Traced<std::uint32_t>{0});
  return std::tuple{solution, iterations};
}
// [/solver]

constexpr std::size_t rows = 200;

// Elements in [0, 1), plus 1 on the diagonals for a unique solution; b = A x for x = 1, 2, 3 and so on.
double element(std::size_t row, std::size_t column) {
  return std::fmod(static_cast<double>((row + 1) * (column + 3)) * 0.618033988749895, 1.0) +
         (row % unknowns == column ? 1 : 0);
}

template <std::size_t Replicas>
std::vector<double> solve_on() {
  constexpr std::size_t share = rows / Replicas;
  std::vector<dist::Tensor<double>> matrix, right_side;
  for (std::size_t replica = 0; replica < Replicas; ++replica) {
    matrix.emplace_back(dist::Shape{share, unknowns});
    right_side.emplace_back(dist::Shape{share});
    for (std::size_t row = 0; row < share; ++row) {
      right_side[replica][row] = 0;
      for (std::size_t column = 0; column < unknowns; ++column) {
        const double a = element(replica * share + row, column);
        matrix[replica](row, column) = a;
        right_side[replica][row] += a * static_cast<double>(column + 1);
      }
    }
  }
  // [run]
  const dist::pjrt::Client client{{.values = {{"cpu_device_count", std::int64_t{Replicas}}}}};
  using A = Doubles<share, unknowns>;
  using B = Doubles<share>;
  const hlo::Program program{client, hlo::trace<A, B>(Replicas, [](A a, B b) { return solve<share>(a, b); })};
  const auto [x, iterations] = program(hlo::PerReplica<A>{client, matrix}, hlo::PerReplica<B>{client, right_side});
  const dist::Tensor<double> solution = x.on(0);  // waits for the result
  // [/run]
  std::printf("%zu replicas on platform %s: %u iterations\n", Replicas, client.platform().c_str(), iterations.on(0)[0]);
  for (std::size_t replica = 1; replica < Replicas; ++replica)
    check(x.on(replica) == solution, "all replicas have the same solution");
  return {solution.elements().begin(), solution.elements().end()};
}

int main() {
  for (const std::vector<double>& solution : {solve_on<1>(), solve_on<2>()})
    for (std::size_t i = 0; i < unknowns; ++i)
      check(std::abs(solution[i] - static_cast<double>(i + 1)) < 1e-9, "the solution equals the exact one");
}
