#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>

namespace dist::nn {

/// Adadelta (Zeiler: "ADADELTA: an adaptive learning rate method", 2012), with Keras' formulas and defaults:
///
///     a = rho a + (1 - rho) g^2
///     d = g sqrt(u + epsilon) / sqrt(a + epsilon)
///     u = rho u + (1 - rho) d^2
///     w -= lr d
///
/// The paper has no learning rate: give 1 for its formula.
struct Adadelta {
  static constexpr std::string_view name = "Adadelta";

  float learning_rate = 1e-3f;
  /// The decay of the averages of squared gradients and squared steps, at least 0 and below 1.
  float rho = 0.95f;
  float epsilon = 1e-7f;  ///< above 0: otherwise no weight ever changes

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_decay(name, "rho", rho);
    detail::require_positive(name, "epsilon", epsilon);
  }

  /// The functor of a step.
  template <class T>
  struct Update {
    static constexpr std::array<std::string_view, 2> slots{"accumulated_grad", "accumulated_delta_var"};
    /// The learning rate of the step.
    T rate;
    /// The decay of the averages.
    T rho;
    /// Prevents division by 0 and a first step of 0.
    T epsilon;
    DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T gradient, T* slot) const {
      using detail::inverse_root;
      using detail::root;
      slot[0] = rho * slot[0] + (T{1} - rho) * (gradient * gradient);
      const T step = gradient * root(slot[1] + epsilon) * inverse_root(slot[0] + epsilon);
      slot[1] = rho * slot[1] + (T{1} - rho) * (step * step);
      return weight - rate * step;
    }
  };

  /// Calls `apply(update)` with the functor of step `iteration` (from 1).
  template <class T, class Apply>
  void with_update(std::int64_t, Apply&& apply) const {
    apply(Update<T>{T(learning_rate), T(rho), T(epsilon)});
  }
};

}  // namespace dist::nn
