#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>

namespace dist::nn {

/// Adagrad (Duchi, Hazan, Singer: "Adaptive subgradient methods for online learning and stochastic optimization", JMLR
/// 12, 2011). Formulas and defaults of Keras' Adagrad, whose epsilon is inside the root:
///
///     a += g^2
///     w -= lr g / sqrt(initial_accumulator_value + a + epsilon)
///
/// The slot starts from 0; the initial value is added in use. If it and epsilon are 0, a weight whose gradients were
/// all 0 does not change; in Keras it becomes NaN.
struct Adagrad {
  static constexpr std::string_view name = "Adagrad";

  float learning_rate = 1e-3f;
  /// The start value of the sum of squares, at least 0.
  float initial_accumulator_value = 0.1f;
  /// Prevents division by 0.
  float epsilon = 1e-7f;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_not_negative(name, "initial_accumulator_value", initial_accumulator_value);
    detail::require_not_negative(name, "epsilon", epsilon);
  }

  /// The functor of a step.
  template <class T>
  struct Update {
    static constexpr std::array<std::string_view, 1> slots{"accumulator"};
    /// The learning rate of the step.
    T rate;
    /// The initial value of the sum of squares plus epsilon.
    T start;
    DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T gradient, T* slot) const {
      slot[0] += gradient * gradient;
      using detail::inverse_root;
      return weight - rate * gradient * inverse_root(start + slot[0]);
    }
  };

  /// Calls `apply(update)` with the functor of step `iteration` (from 1).
  template <class T, class Apply>
  void with_update(std::int64_t, Apply&& apply) const {
    apply(Update<T>{T(learning_rate), static_cast<T>(double{initial_accumulator_value} + double{epsilon})});
  }
};

}  // namespace dist::nn
