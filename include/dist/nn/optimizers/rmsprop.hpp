#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>

namespace dist::nn {

/// RMSprop (Hinton, "Neural networks for machine learning", lecture 6e, 2012). Formulas and defaults of Keras' RMSprop,
/// whose epsilon is inside the root:
///
///     v = rho v + (1 - rho) g^2
///     a = rho a + (1 - rho) g                             if centered
///     d = lr g / sqrt(v + epsilon)                        or lr g / sqrt(v - a^2 + epsilon) if centered
///     w -= d                                              or m = momentum m + d;  w -= m
///
/// Two differences avoid NaN: the variance v - a^2 is 0 if rounding makes it negative, and with epsilon 0, a weight
/// whose gradients were all 0 does not change.
struct RMSprop {
  static constexpr std::string_view name = "RMSprop";

  float learning_rate = 1e-3f;
  /// The decay of the averages of gradients and squares, at least 0 and below 1.
  float rho = 0.9f;
  /// The part of the previous step that is added; 0: none.
  float momentum = 0;
  /// Prevents division by 0.
  float epsilon = 1e-7f;
  /// True to divide by the standard deviation instead of the root mean square.
  bool centered = false;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_decay(name, "rho", rho);
    detail::require_decay(name, "momentum", momentum);
    detail::require_not_negative(name, "epsilon", epsilon);
  }

  /// The functor of a step.
  template <class T, bool Centered, bool Momentum>
  struct Update {
    /// The index of the momentum slot, if there is one.
    static constexpr std::size_t momentum_slot = Centered ? 2 : 1;
    static constexpr std::array<std::string_view, momentum_slot + (Momentum ? 1 : 0)> slots = [] {
      std::array<std::string_view, momentum_slot + (Momentum ? 1 : 0)> names{"velocity"};
      if constexpr (Centered) names[1] = "average_gradient";
      if constexpr (Momentum) names[momentum_slot] = "momentum";
      return names;
    }();
    /// The learning rate of the step.
    T rate;
    /// The decay of the averages.
    T rho;
    /// The part of the previous step that is added.
    T momentum;
    /// Prevents division by 0.
    T epsilon;
    DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T gradient, T* slot) const {
      slot[0] = rho * slot[0] + (T{1} - rho) * (gradient * gradient);
      T square = slot[0];
      if constexpr (Centered) {
        slot[1] = rho * slot[1] + (T{1} - rho) * gradient;
        square -= slot[1] * slot[1];
        using detail::select;
        square = select(square < T{0}, T{0}, square);
      }
      using detail::inverse_root;
      T step = rate * gradient * inverse_root(square + epsilon);
      if constexpr (Momentum) {
        slot[momentum_slot] = momentum * slot[momentum_slot] + step;
        step = slot[momentum_slot];
      }
      return weight - step;
    }
  };

  /// Calls `apply(update)` with the functor of step `iteration` (from 1).
  template <class T, class Apply>
  void with_update(std::int64_t, Apply&& apply) const {
    if (centered) return with_momentum<T, true>(apply);
    return with_momentum<T, false>(apply);
  }

 private:
  template <class T, bool Centered, class Apply>
  void with_momentum(Apply& apply) const {
    if (momentum == 0) return apply(Update<T, Centered, false>{T(learning_rate), T(rho), T(momentum), T(epsilon)});
    return apply(Update<T, Centered, true>{T(learning_rate), T(rho), T(momentum), T(epsilon)});
  }
};

}  // namespace dist::nn
