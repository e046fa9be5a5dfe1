#pragma once

#include <cmath>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/segment_sums.cuh>
#include <dist/nn/cuda/state.cuh>

namespace dist::nn::cuda {

/// A sum of powers of e, over that of the largest exponent: none overflows.
template <class T>
struct SumOfPowers {
  static constexpr T none = -static_cast<T>(__builtin_huge_val());  // what -infinity adds is 0
  T largest = none;
  T over_largest{0};

  DIST_HD void operator+=(const SumOfPowers& other) {
    if (other.largest == none) return;
    if (other.largest > largest) {
      over_largest *= std::exp(largest - other.largest);
      largest = other.largest;
    }
    over_largest += other.over_largest * std::exp(other.largest - largest);
  }
};
template <std::size_t Classes, class T>
struct PowersOfRow {
  using Sum = SumOfPowers<T>;
  static constexpr std::size_t count = 1;
  const T* x;
  DIST_HD void operator()(std::size_t row, std::size_t i, Sum (&sums)[count]) const {
    sums[0] += Sum{x[row * Classes + i], T{1}};
  }
};
template <std::size_t Classes, class T>
struct ShareOfPowers {
  const T* x;
  const SumOfPowers<T>* sums;
  T* y;
  DIST_HD void operator()(std::size_t i) const {
    const SumOfPowers<T>& sum = sums[i / Classes];
    y[i] = std::exp(x[i] - sum.largest) / sum.over_largest;
  }
};

template <std::size_t Classes, class T>
struct ProductsOfRow {
  using Sum = T;
  static constexpr std::size_t count = 1;
  const T* y;
  const T* dy;
  DIST_HD void operator()(std::size_t row, std::size_t i, Sum (&sums)[count]) const {
    sums[0] += y[row * Classes + i] * dy[row * Classes + i];
  }
};
template <std::size_t Classes, class T>
struct GradientOfShares {
  const T* y;
  const T* dy;
  const T* means;
  T* dx;
  DIST_HD void operator()(std::size_t i) const { dx[i] = y[i] * (dy[i] - means[i / Classes]); }
};

/// exp(x) over its sum along the last axis, of `Classes` elements. Also works in place.
template <std::size_t Classes, class T>
class Softmax {
 public:
  void forward(State& state, View<const T> x, View<T> y) {
    const auto* const sums = sum_segments(state, x.size() / Classes, Classes, PowersOfRow<Classes, T>{x.data()});
    state.queue().for_each({0, x.size()}, ShareOfPowers<Classes, T>{x.data(), sums, y.data()});
  }

  /// dx = y * (dy - sum(y * dy)).
  void input_gradient(State& state, View<const T> y, View<const T> dy, View<T> dx) {
    const T* const means =
        sum_segments(state, y.size() / Classes, Classes, ProductsOfRow<Classes, T>{y.data(), dy.data()});
    state.queue().for_each({0, y.size()}, GradientOfShares<Classes, T>{y.data(), dy.data(), means, dx.data()});
  }
};

}  // namespace dist::nn::cuda
