// Activations of a user.
#pragma once

#include <dist/core/config.hpp>

namespace dist_test {

/// x / (1 + |x|), whose gradient follows from its output.
struct Softsign {
  template <class T>
  [[nodiscard]] DIST_HD static T apply(T x) noexcept {
    return x / (T{1} + magnitude(x));
  }
  template <class T>
  [[nodiscard]] DIST_HD static T gradient(T y, T y_gradient) noexcept {
    return (T{1} - magnitude(y)) * (T{1} - magnitude(y)) * y_gradient;
  }

 private:
  template <class T>
  [[nodiscard]] DIST_HD static T magnitude(T x) noexcept {
    return x < T{0} ? -x : x;
  }
};

/// Its gradient needs the input, because the output does not determine its sign.
struct Square {
  template <class T>
  [[nodiscard]] DIST_HD static T apply(T x) noexcept {
    return x * x;
  }
  template <class T>
  [[nodiscard]] DIST_HD static T gradient_at(T x, T y_gradient) noexcept {
    return T{2} * x * y_gradient;
  }
};

}  // namespace dist_test
