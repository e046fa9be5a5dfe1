#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>

namespace dist::nn {

/// Lion (Chen et al.: "Symbolic discovery of optimization algorithms", NeurIPS 2023), with Keras' formulas and
/// defaults. Weights move by the learning rate, which should be 3 to 10 times smaller than Adam's:
///
///     w -= lr sign(beta_1 m + (1 - beta_1) g)
///     m = beta_2 m + (1 - beta_2) g
///
/// The sign of 0 is 0, and the sign of NaN is NaN.
struct Lion {
  static constexpr std::string_view name = "Lion";

  float learning_rate = 1e-3f;
  /// The weight of the momentum in the direction, at least 0 and below 1.
  float beta_1 = 0.9f;
  /// The decay of the momentum, at least 0 and below 1.
  float beta_2 = 0.99f;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_decay(name, "beta_1", beta_1);
    detail::require_decay(name, "beta_2", beta_2);
  }

  /// The functor of a step.
  template <class T>
  struct Update {
    static constexpr std::array<std::string_view, 1> slots{"momentum"};
    /// The learning rate of the step.
    T rate;
    /// The weight of the momentum in the direction.
    T beta_1;
    /// The decay of the momentum.
    T beta_2;
    DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T gradient, T* slot) const {
      const T direction = beta_1 * slot[0] + (T{1} - beta_1) * gradient;
      slot[0] = beta_2 * slot[0] + (T{1} - beta_2) * gradient;
      using detail::select;
      const T sign = select(direction > T{0}, T{1}, select(direction < T{0}, T{-1}, direction));
      return weight - rate * sign;
    }
  };

  /// Calls `apply(update)` with the functor of step `iteration` (from 1).
  template <class T, class Apply>
  void with_update(std::int64_t, Apply&& apply) const {
    apply(Update<T>{T(learning_rate), T(beta_1), T(beta_2)});
  }
};

}  // namespace dist::nn
