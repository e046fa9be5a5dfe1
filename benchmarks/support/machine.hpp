#pragma once

#include <cstddef>
#include <functional>

#include <dist/core/config.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

#include "clock.hpp"

/// Limits of the machine, measured in the same run as the results. nvcc cannot compile the vectors of this file.
namespace bench {

namespace detail {

/// A vector of floats. In a local alias of a template, g++ ignores the attribute.
template <std::size_t Bytes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(Bytes)));
};

struct MultiplyAdds {
  double duration;
  double& rate;

  template <std::size_t Bytes>
  DIST_ALWAYS_INLINE void operator()() const {
    using Vector = typename VectorOf<Bytes>::Type;
    constexpr int chains =
        12;  // latency 4 x throughput 2, plus a reserve; with two operands they fit into 16 registers
    constexpr int unrolled = 4096;
    Vector sums[chains] = {};
    Vector factor = Vector{} + 0.999999f;
    Vector offset = Vector{} + 1e-7f;
    keep(factor);
    keep(offset);
    for (Vector& sum : sums) keep(sum);  // otherwise g++ computes equal sums once
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

/// Returns the peak multiply-add rate of one core in FLOP per second, with the widest vectors of the processor.
inline double fma_rate(double duration) {
  double rate = 0;
  dist::detail::with_widest_vectors(detail::MultiplyAdds{duration, rate});
  return rate;
}

/// Returns the multiply-add rate of all replicas of a strategy together.
template <class Strategy>
double joint_fma_rate(Strategy& strategy, double duration) {
  return strategy.reduce(dist::sum, strategy.run([&](auto&) { return fma_rate(duration); }));
}

/// True if no other program uses one of the two cores: the joint rate is nearly twice the rate of one core. If it is
/// higher, the measurement of the one core was disturbed.
inline bool is_quiet(double rate_of_one, double rate_of_both) {
  return rate_of_both >= 1.9 * rate_of_one && rate_of_both <= 2.1 * rate_of_one;
}

/// A gate for rounds: true if two cores compute nearly twice as fast as one.
template <class Strategy>
std::function<bool()> quiet_cores(Strategy& two_replicas) {
  return [&] {
    const double both = joint_fma_rate(two_replicas, 0.02);
    return is_quiet(fma_rate(0.02), both);
  };
}

}  // namespace bench
