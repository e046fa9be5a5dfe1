#pragma once

#include <cmath>

#include <dist/core/config.hpp>

namespace dist::nn {

/// The hyperbolic tangent of each element.
struct Tanh {
  template <class T>
  [[nodiscard]] DIST_HD static T apply(T x) {
    using std::tanh;
    return tanh(x);
  }
  template <class T>
  [[nodiscard]] DIST_HD static T gradient(T y, T y_gradient) {
    return y_gradient * (T{1} - y * y);
  }
};

}  // namespace dist::nn
