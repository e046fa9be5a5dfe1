#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/check.hpp>

namespace dist::nn {

/// Stochastic gradient descent, with optional momentum. Formulas and defaults of Keras' SGD:
///
///     w -= lr g                            without momentum
///     m = momentum m - lr g;  w += m       with momentum (Polyak)
///     w += momentum m - lr g               after the same m, with Nesterov's look-ahead
struct SGD {
  static constexpr std::string_view name = "SGD";

  float learning_rate = 0.01f;
  /// The part of the previous step that is added; 0: none.
  float momentum = 0;
  /// True for Nesterov's look-ahead.
  bool nesterov = false;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_decay(name, "momentum", momentum);
  }

  /// The functor of a step, without momentum.
  template <class T>
  struct Plain {
    static constexpr std::array<std::string_view, 0> slots{};
    /// The learning rate of the step.
    T rate;
    DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T gradient, T*) const { return weight - rate * gradient; }
  };

  /// The functor of a step, with momentum.
  template <class T, bool Nesterov>
  struct Momentum {
    static constexpr std::array<std::string_view, 1> slots{"momentum"};
    /// The learning rate of the step.
    T rate;
    /// The part of the previous step that is added.
    T momentum;
    DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T gradient, T* slot) const {
      const T step = rate * gradient;
      slot[0] = momentum * slot[0] - step;
      return Nesterov ? weight + (momentum * slot[0] - step) : weight + slot[0];
    }
  };

  /// Calls `apply(update)` with the functor of step `iteration` (from 1).
  template <class T, class Apply>
  void with_update(std::int64_t, Apply&& apply) const {
    if (momentum == 0) return apply(Plain<T>{T(learning_rate)});
    if (nesterov) return apply(Momentum<T, true>{T(learning_rate), T(momentum)});
    return apply(Momentum<T, false>{T(learning_rate), T(momentum)});
  }
};

}  // namespace dist::nn
