// Least squares by Gauss-Newton with Eigen. Each replica sums the normal equations of its measurements in the
// strategy's memory; all solve the reduced system.
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include <Eigen/Dense>
#include <dist/dist.hpp>

#include "check.hpp"

namespace {

constexpr std::size_t measurements = 100'000;
constexpr int unknowns = 3;
using Unknowns = Eigen::Matrix<double, unknowns, 1>;

/// Measurement i of y = a exp(-b t) + c with noise, and the model's value and derivatives.
struct Decay {
  dist::RandomStream random{/*seed=*/2026};

  static double value(const Unknowns& p, double t) { return p[0] * std::exp(-p[1] * t) + p[2]; }
  static Unknowns slopes(const Unknowns& p, double t) {
    const double e = std::exp(-p[1] * t);
    return {e, -p[0] * t * e, 1};
  }
  [[nodiscard]] double time(std::size_t i) const { return 5 * static_cast<double>(random.uniform(2 * i)); }
  [[nodiscard]] double measured(std::size_t i) const {
    return value({2, 0.7, 0.5}, time(i)) + 0.01 * (static_cast<double>(random.uniform(2 * i + 1)) - 0.5);
  }
};

template <dist::Strategy S>
std::vector<std::array<double, unknowns>> fit(S& strategy) {
  // [eigen]
  auto equations = strategy.template buffer<double>({unknowns, unknowns + 1}, "normal equations");
  const auto found = strategy.run([&](auto& replica) {
    const auto memory = equations.component(replica);
    Eigen::Map<Eigen::Matrix<double, unknowns, unknowns + 1>> sums{memory.data()};  // J^T J and J^T r
    const dist::IndexRange mine = replica.shard(measurements);
    const Decay decay;

    Unknowns p{1, 1, 0};
    for (double change = 1; change > 1e-12;) {
      sums.setZero();
      for (std::size_t i = mine.begin; i < mine.end; ++i) {
        const double t = decay.time(i);
        const Unknowns slopes = Decay::slopes(p, t);
        sums.leftCols<unknowns>() += slopes * slopes.transpose();
        sums.col(unknowns) += slopes * (decay.measured(i) - Decay::value(p, t));
      }
      replica.all_reduce(dist::sum, memory);  // now the sums over all measurements
      const Unknowns step = sums.leftCols<unknowns>().ldlt().solve(sums.col(unknowns));
      p += step;
      change = step.norm();  // the sums are equal to the last bit, so all replicas stop together
    }
    return std::array<double, unknowns>{p[0], p[1], p[2]};
  });
  // [/eigen]
  const auto all = strategy.local_results(found);
  return {all.begin(), all.end()};
}

}  // namespace

int main() {
  dist::Default one;
  dist::Mirrored<dist::ThreadAllReduce> several{3};
  const auto alone = fit(one)[0];
  const auto together = fit(several);
  std::printf("y = %.4f exp(-%.4f t) + %.4f\n", together[0][0], together[0][1], together[0][2]);
  for (const auto& each : together) check(each == together[0], "all replicas find the same solution to the last bit");

  const std::array<double, unknowns> truth{2, 0.7, 0.5};
  for (std::size_t k = 0; k < truth.size(); ++k) {
    check(std::abs(together[0][k] - alone[k]) < 1e-10, "three replicas find the same solution as one");
    // The noise of the 100,000 measurements has a standard deviation of 0.003.
    check(std::abs(together[0][k] - truth[k]) < 1e-3, "the fit recovers the true curve");
  }
}
