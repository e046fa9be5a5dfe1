// Combines the results of replicas: structures, means over uneven parts, gathered rows, merged calls.
#include <cstdio>
#include <tuple>

#include <dist/dist.hpp>

#include "check.hpp"

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};

  // [values]
  // Replica r measures r + 1 samples, and reports how many were good.
  auto [samples, good] = strategy.run([](auto& replica) {
    const std::size_t r = replica.replica_id().index();
    dist::Tensor<float> mine{{r + 1, 2}};
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<float>(r);
    return std::tuple{mine, static_cast<int>(r)};
  });
  const dist::Tensor<float> mean = strategy.reduce(dist::mean, samples, 0);  // over all 6 rows, not a mean of means
  const dist::Tensor<float> all = strategy.gather(samples, 0);               // [6, 2], in replica order
  const int total = strategy.reduce(dist::sum, good);
  // [/values]
  std::printf("mean %.4f, %zu rows, %d good\n", static_cast<double>(mean[0]), all.rows(), total);
  check(mean[0] == (0.0f * 1 + 1.0f * 2 + 2.0f * 3) / 6, "the mean counts every row once");
  check(all.rows() == 6 && all[11] == 2, "gather keeps the order of the replicas");
  check(total == 3, "each value of a tuple is reduced separately");

  // [merge]
  auto best = strategy.variable<float>(dist::Shape{}, 0.0f, "best");
  strategy.run([&](auto& replica) {
    const float mine = static_cast<float>(replica.replica_id().index() * 2 % 3);  // 0, 2, 1
    replica.merge_call(                                                           // once, for all replicas together
        [&](auto& scope, const auto& all_values) { best.assign(scope, strategy.reduce(dist::max, all_values)); }, mine);
  });
  // [/merge]
  check(best.value(strategy.scope()) == 2, "the merged call received the values of all replicas");
}
