// A user's multi-process program for any launcher, here started alone.
#include <cstddef>
#include <cstdio>

#include <dist/dist.hpp>
#include <dist/multi_worker.hpp>

int main() try {
  // [workers]
  dist::MultiWorker<dist::RingAllReduce> strategy;  // create it first: finds the other processes and connects to them
  const std::size_t steps = 1'000'000;

  const auto parts = strategy.run([&](auto& replica) {
    return replica.transform_reduce(dist::sum, replica.shard(steps), [&](std::size_t i) {
      const double x = (static_cast<double>(i) + 0.5) / steps;
      return 4 / (1 + x * x) / steps;
    });
  });
  const double pi = strategy.reduce(dist::sum, parts);  // all processes call it and get the same value
  if (strategy.is_chief()) std::printf("%s\npi is %.9f\n", strategy.describe().c_str(), pi);
  // [/workers]
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
