#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>

namespace dist::nn {

/// Adam with Nesterov's momentum (Dozat: "Incorporating Nesterov momentum into Adam", ICLR 2016 workshop), with Keras'
/// formulas and defaults. In step t, from 1, with mu_t = beta_1 (1 - 0.96^t / 2) and their product p_t = mu_1 ... mu_t:
///
///     m += (1 - beta_1) (g - m);  v += (1 - beta_2) (g^2 - v)
///     d = mu_(t+1) m / (1 - p_(t+1)) + (1 - mu_t) g / (1 - p_t)
///     w -= lr d / (sqrt(v / (1 - beta_2^t)) + epsilon)
struct Nadam {
  static constexpr std::string_view name = "Nadam";

  float learning_rate = 1e-3f;
  /// The decay of the first moment, at least 0 and below 1.
  float beta_1 = 0.9f;
  /// The decay of the second moment, at least 0 and below 1.
  float beta_2 = 0.999f;
  /// Prevents division by 0; added after the bias correction.
  float epsilon = 1e-7f;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_decay(name, "beta_1", beta_1);
    detail::require_decay(name, "beta_2", beta_2);
    detail::require_not_negative(name, "epsilon", epsilon);
  }

  /// The functor of a step.
  template <class T>
  struct Update {
    static constexpr std::array<std::string_view, 2> slots{"momentum", "velocity"};
    /// The learning rate of the step.
    T rate;
    /// 1 - beta_1.
    T keep_1;
    /// 1 - beta_2.
    T keep_2;
    /// mu_(t+1) / (1 - p_(t+1)).
    T share_of_momentum;
    /// (1 - mu_t) / (1 - p_t).
    T share_of_gradient;
    /// The bias correction of the second moment: 1 / (1 - beta_2^t).
    T correction_2;
    /// Prevents division by 0.
    T epsilon;
    DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T gradient, T* slot) const {
      using detail::root;
      slot[0] += keep_1 * (gradient - slot[0]);
      slot[1] += keep_2 * (gradient * gradient - slot[1]);
      const T direction = share_of_momentum * slot[0] + share_of_gradient * gradient;
      return weight - rate * direction / (root(slot[1] * correction_2) + epsilon);
    }
  };

  /// Calls `apply(update)` with the functor of step `iteration` (from 1).
  template <class T, class Apply>
  void with_update(std::int64_t iteration, Apply&& apply) const {
    const double beta{beta_1};
    const auto steps = static_cast<double>(iteration);
    const double now = beta * (1 - std::pow(0.96, steps) / 2);
    const double next = beta * (1 - std::pow(0.96, steps + 1) / 2);
    double product = std::pow(beta, steps);
    constexpr std::int64_t last_below_1 = 900;  // later factors 1 - 0.96^t / 2 are 1 in double
    double power = 1;
    for (std::int64_t step = 1; step <= std::min(iteration, last_below_1); ++step) product *= 1 - (power *= 0.96) / 2;
    apply(Update<T>{T(learning_rate), static_cast<T>(1 - beta), static_cast<T>(1 - double{beta_2}),
                    static_cast<T>(next / (1 - product * next)), static_cast<T>((1 - now) / (1 - product)),
                    static_cast<T>(1 / (1 - std::pow(double{beta_2}, steps))), T(epsilon)});
  }
};

}  // namespace dist::nn
