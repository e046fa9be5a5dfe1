// Monte Carlo with random numbers addressed by index: the estimate does not depend on the number of replicas.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>

#include <dist/dist.hpp>

#include "check.hpp"

namespace {

constexpr std::size_t samples = 4'000'000;

/// Returns 1 for a point inside the quarter circle. Holds its data by value, so it can be copied to any device.
struct Hit {
  dist::RandomStream random;
  DIST_HD std::uint64_t operator()(std::size_t i) const {
    const float x = random.uniform(2 * i);
    const float y = random.uniform(2 * i + 1);
    return x * x + y * y < 1.0f ? 1 : 0;
  }
};

template <class Strategy>
std::uint64_t count_hits(Strategy& strategy) {
  auto hits = strategy.run([](auto& replica) {
    return replica.transform_reduce(dist::sum, replica.shard(samples), Hit{dist::RandomStream{/*seed=*/2026}});
  });
  return strategy.reduce(dist::sum, hits);
}

}  // namespace

int main() {
  dist::OneDevice<dist::Cpu> one;
  dist::Mirrored<dist::ThreadAllReduce> several{3};
  const auto hits = count_hits(one);
  check(count_hits(several) == hits, "three replicas draw the same numbers as one");

  const double estimate = 4.0 * static_cast<double>(hits) / samples;
  const double deviation = std::sqrt(std::numbers::pi * (4 - std::numbers::pi) / samples);
  std::printf("pi is about %.5f, standard deviation %.5f\n", estimate, deviation);
  check(std::abs(estimate - std::numbers::pi) < 4 * deviation, "the estimate is within four standard deviations");
}
