#pragma once

#include <chrono>
#include <cstddef>

#include <dist/dist.hpp>

/// Limits of the machine, measured in the same run as what is held against them.
namespace bench {

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Keeps the compiler from removing the computation of `value`.
template <class T>
inline void keep(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

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

}  // namespace bench
