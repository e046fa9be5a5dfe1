#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/strategy/one_device.hpp>

#include "../support/clock.hpp"
#include "../support/distribution.hpp"

namespace bench {

/// A copy of floats within the memory of the first GPU by the CUDA runtime.
class Copy {
 public:
  explicit Copy(std::size_t count)
      : from_(strategy_.buffer<float>(dist::Shape{count}, "from")),
        to_(strategy_.buffer<float>(dist::Shape{count}, "to")) {
    queue().fill(from_.component(strategy_.scope(), 0), 1.0f);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  /// Returns the seconds of one copy.
  double operator()() {
    queue().wait();
    const double start = seconds();
    queue().copy(from_.component(strategy_.scope(), 0), to_.component(strategy_.scope(), 0));
    queue().wait();
    return seconds() - start;
  }

 private:
  using Strategy = dist::OneDevice<dist::Cuda>;
  [[nodiscard]] dist::Cuda::Queue queue() { return strategy_.scope().queue(0); }

  Strategy strategy_;
  decltype(std::declval<Strategy&>().buffer<float>(dist::Shape{})) from_;
  decltype(std::declval<Strategy&>().buffer<float>(dist::Shape{})) to_;
};

/// A gate for rounds on a GPU: true if a copy of `count` floats takes at most 5 % longer than the fastest one. Then
/// no other program uses the memory, and the clock rate is unchanged.
[[nodiscard]] inline std::function<bool()> steady_memory(std::size_t count) {
  const auto copy = std::make_shared<Copy>(count);
  const auto typical = [copy] {
    std::vector<double> times(5);
    for (double& time : times) time = (*copy)();
    return median(std::move(times));
  };
  typical();  // warm-up
  return [typical, fastest = typical()]() mutable {
    const double now = typical();
    fastest = std::min(fastest, now);
    return now <= 1.05 * fastest;
  };
}

}  // namespace bench
