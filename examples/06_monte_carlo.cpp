// Monte Carlo: random numbers are addressed by index, so the estimate is the same number whatever the replica count.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>

#include <dist/dist.hpp>

#include "check.hpp"

namespace {

constexpr std::size_t samples = 4'000'000;

/// 1 for a point of the unit square that falls into the quarter circle. What a body needs is copied with it, so that it can
/// run on any device.
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
  check(count_hits(several) == hits, "three replicas draw the numbers that one draws");

  const double estimate = 4.0 * static_cast<double>(hits) / samples;
  const double deviation = std::sqrt(std::numbers::pi * (4 - std::numbers::pi) / samples);
  std::printf("pi is about %.5f, give or take %.5f\n", estimate, deviation);
  check(std::abs(estimate - std::numbers::pi) < 4 * deviation, "the estimate lies within four standard deviations");
}
