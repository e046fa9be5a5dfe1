#pragma once

#include <cmath>

#include <dist/core/config.hpp>

namespace dist::nn {

/// The logistic function of each element, 1 / (1 + exp(-x)).
struct Sigmoid {
  template <class T>
  [[nodiscard]] DIST_HD static T apply(T x) {
    using std::exp;
    return T{1} / (T{1} + exp(-x));
  }
  template <class T>
  [[nodiscard]] DIST_HD static T gradient(T y, T y_gradient) {
    return y_gradient * y * (T{1} - y);
  }
};

}  // namespace dist::nn
