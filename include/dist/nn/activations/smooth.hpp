#pragma once

#include <cmath>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/choice.hpp>

namespace dist::nn {

/// The exponential linear unit: x, or for negative x alpha (exp(x) - 1), with alpha = `Numerator` / `Denominator`, by
/// default 1 (Clevert, Unterthiner and Hochreiter: "Fast and accurate deep network learning by exponential linear
/// units", ICLR 2016).
template <std::size_t Numerator = 1, std::size_t Denominator = 1>
struct Elu {
  static_assert(Numerator > 0 && Denominator > 0, "nn::Elu has an alpha above 0: Elu<1, 2> has alpha 1/2");

  template <class T>
  [[nodiscard]] DIST_HD static T apply(T x) {
    using detail::select;
    using std::expm1;
    return select(x > T{0}, x, alpha<T>() * expm1(x));
  }
  template <class T>
  [[nodiscard]] DIST_HD static T gradient(T y, T y_gradient) {
    using detail::select;
    return select(y > T{0}, y_gradient, y_gradient * (y + alpha<T>()));
  }

 private:
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T alpha() {
    return T(static_cast<double>(Numerator) / static_cast<double>(Denominator));
  }
};

/// The Gaussian error linear unit, by the exact error function (Hendrycks and Gimpel, "Gaussian error linear units",
/// 2016). Keras' default; its `approximate=True` is GeluTanh.
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

/// The approximation of Gelu by the hyperbolic tangent, x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which
/// differs by up to 5e-4 (section 2 of the paper). Keras' `gelu(approximate=True)`, as in BERT and GPT-2.
struct GeluTanh {
  template <class T>
  [[nodiscard]] DIST_HD static T apply(T x) {
    return x * share<T>(x * x, x);
  }
  template <class T>
  [[nodiscard]] DIST_HD static T gradient_at(T x, T y_gradient) {
    const T square = x * x;
    const T part = share<T>(square, x);
    // The share is a logistic function of 2 u, so its derivative is 2 share (1 - share) u'.
    const T slope = T(2 * 0.79788456080286535588) * (T{1} + T(3 * 0.044715) * square);
    return y_gradient * (part + x * part * (T{1} - part) * slope);
  }

 private:
  template <class T>
  [[nodiscard]] DIST_HD static T share(T square, T x) {
    using std::tanh;
    return T(0.5) + T(0.5) * tanh(T(0.79788456080286535588) * x * (T{1} + T(0.044715) * square));
  }
};

/// x min(max(x + 3, 0), 6) / 6, also called hard swish (Howard et al.: "Searching for MobileNetV3", ICCV 2019).
struct HardSilu {
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T apply(T x) {
    using detail::select;
    return select(x <= T{-3}, T{0}, select(x >= T{3}, x, x * (x + T{3}) * T(1.0 / 6)));
  }
  template <class T>
  [[nodiscard]] DIST_HD static constexpr T gradient_at(T x, T y_gradient) {
    using detail::select;
    return y_gradient * select(x <= T{-3}, T{0}, select(x >= T{3}, T{1}, (x + T(1.5)) * T(1.0 / 3)));
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

/// log(1 + exp(x)), without overflow.
struct Softplus {
  template <class T>
  [[nodiscard]] DIST_HD static T apply(T x) {
    using detail::select;
    using std::exp;
    using std::log1p;
    return select(x > T{0}, x, T{0}) + log1p(exp(select(x > T{0}, -x, x)));
  }
  template <class T>
  [[nodiscard]] DIST_HD static T gradient(T y, T y_gradient) {
    using std::expm1;
    return -y_gradient * expm1(-y);
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
