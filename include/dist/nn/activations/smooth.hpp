#pragma once

#include <cmath>

#include <dist/core/config.hpp>

namespace dist::nn {

/// The Gaussian error linear unit, by the exact error function (Hendrycks and Gimpel, "Gaussian error linear units",
/// 2016). Keras' default; its `approximate=True` uses the hyperbolic tangent and differs by up to 5e-4.
struct Gelu {
  template <class T>
  [[nodiscard]] DIST_HD static T apply(T x) {
    using std::erf;
    return x * (T(0.5) + T(0.5) * erf(x * T(0.70710678118654752440)));
  }
  template <class T>
  [[nodiscard]] DIST_HD static T gradient_at(T x, T y_gradient) {
    using std::erf;
    using std::exp;
    const T distribution = T(0.5) + T(0.5) * erf(x * T(0.70710678118654752440));
    const T density = T(0.39894228040143267794) * exp(T(-0.5) * x * x);
    return y_gradient * (distribution + x * density);
  }
};

/// The logistic function, 1 / (1 + exp(-x)).
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

/// The hyperbolic tangent.
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
