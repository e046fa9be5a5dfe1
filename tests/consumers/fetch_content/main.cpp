// [first]
#include <cstdio>

#include <dist/dist.hpp>

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy;  // one replica per core
  const std::size_t steps = 1'000'000;

  const auto parts = strategy.run([&](auto& replica) {  // called once per replica, in parallel
    return replica.transform_reduce(dist::sum, replica.shard(steps), [&](std::size_t i) {
      const double x = (static_cast<double>(i) + 0.5) / steps;
      return 4 / (1 + x * x) / steps;
    });
  });
  std::printf("%zu replicas: pi is %.9f\n", strategy.num_replicas_in_sync(), strategy.reduce(dist::sum, parts));
}
// [/first]
