// A strategy runs one function on every replica and reduces the results.
#include <cstdio>

#include <dist/dist.hpp>

#include "check.hpp"

int main() {
  // [hello]
  dist::Mirrored<dist::ThreadAllReduce> strategy;  // one replica per core; try {4}
  std::puts(strategy.describe().c_str());

  auto squares = strategy.run([](auto& replica) {  // called once per replica, in parallel
    const auto id = replica.replica_id().index();
    return id * id;
  });
  const auto total = strategy.reduce(dist::sum, squares);
  // [/hello]

  std::printf("sum of the squared replica ids: %zu\n", total);
  const auto n = strategy.num_replicas_in_sync();
  check(total == (n - 1) * n * (2 * n - 1) / 6, "the sum of the first squares is (n-1)n(2n-1)/6");

  // The result of each replica is available, too.
  for (const auto square : strategy.local_results(squares)) std::printf("  %zu\n", square);
}
