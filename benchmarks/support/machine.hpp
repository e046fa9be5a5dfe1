#pragma once

#include <cstddef>
#include <functional>

#include <dist/core/reduce_op.hpp>

#include "clock.hpp"

/// Limits of the machine, measured in the same run as what is held against them. nvcc cannot read this file, for its vectors.
namespace bench {

/// Multiply-adds of independent vectors that fill the registers: what one core computes at most, in FLOP per second.
inline double fma_rate(double duration) {
  using Vector = float __attribute__((vector_size(sizeof(float) * 16)));
  constexpr int chains = 12;  // latency 4 times throughput 2, and a reserve
  constexpr int unrolled = 4096;
  Vector sums[chains] = {};
  Vector factor = Vector{} + 0.999999f;
  Vector offset = Vector{} + 1e-7f;
  keep(factor);
  keep(offset);
  double operations = 0;
  const double start = seconds();
  double now = start;
  while (now - start < duration) {
    for (int i = 0; i < unrolled; ++i)
      for (Vector& sum : sums) sum = sum * factor + offset;
    operations += 2.0 * 16 * chains * unrolled;
    now = seconds();
  }
  for (Vector& sum : sums) keep(sum);
  return operations / (now - start);
}

/// The same on all replicas of a strategy at once; the rate of all together.
template <class Strategy>
double joint_fma_rate(Strategy& strategy, double duration) {
  return strategy.reduce(dist::sum, strategy.run([&](auto&) { return fma_rate(duration); }));
}

/// Whether nothing else keeps one of two cores busy: together they reach twice the rate of one, nearly. More than that
/// says that the measurement of the one was disturbed.
inline bool is_quiet(double rate_of_one, double rate_of_both) {
  return rate_of_both >= 1.9 * rate_of_one && rate_of_both <= 2.1 * rate_of_one;
}

/// The round is quiet when two cores together compute nearly twice what one does.
template <class Strategy>
std::function<bool()> quiet_cores(Strategy& two_replicas) {
  return [&] {
    const double both = joint_fma_rate(two_replicas, 0.02);
    return is_quiet(fma_rate(0.02), both);
  };
}

}  // namespace bench
