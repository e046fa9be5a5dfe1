#pragma once

#include <cmath>

#include <dist/core/config.hpp>

namespace dist::nn {

/// x / (1 + exp(-x)), also called swish.
struct Silu {
  template <class T>
  [[nodiscard]] DIST_HD static T apply(T x) {
    using std::exp;
    return x / (T{1} + exp(-x));
  }
  template <class T>
  [[nodiscard]] DIST_HD static T gradient_at(T x, T y_gradient) {
    using std::exp;
    const T sigmoid = T{1} / (T{1} + exp(-x));
    return y_gradient * sigmoid * (T{1} + x * (T{1} - sigmoid));
  }
};

}  // namespace dist::nn
