#pragma once

#include <cstddef>
#include <functional>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

#include "clock.hpp"

/// Limits of the machine, measured in the same run as what is held against them. nvcc cannot read this file, for its vectors.
namespace bench {

namespace detail {

/// The body of fma_rate, for vectors of `Bytes` bytes.
struct MultiplyAdds {
  double duration;
  double& rate;

  template <std::size_t Bytes>
  DIST_ALWAYS_INLINE void operator()() const {
    using Vector = float __attribute__((vector_size(Bytes)));
    constexpr int chains = 12;  // latency 4 times throughput 2, and a reserve; with two more they fit into 16 registers
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
      operations += 2.0 * (Bytes / sizeof(float)) * chains * unrolled;
      now = seconds();
    }
    for (Vector& sum : sums) keep(sum);
    rate = operations / (now - start);
  }
};

}  // namespace detail

/// Multiply-adds of independent vectors that fill the registers: what one core computes at most, in FLOP per second. With the
/// widest vectors that the processor has.
inline double fma_rate(double duration) {
  double rate = 0;
  dist::detail::with_widest_vectors(detail::MultiplyAdds{duration, rate});
  return rate;
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
