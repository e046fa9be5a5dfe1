#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace dist::nn {

/// Lamb, for large batches (You et al.: "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR
/// 2020). Formulas and defaults of Keras' Lamb. In step t, from 1, for each parameter w:
///
///     m += (1 - beta_1) (g - m);  v += (1 - beta_2) (g^2 - v)
///     d = m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon)
///     w -= lr |w| / |d| d                                 or lr d where a norm is 0
///
/// The paper includes weight decay in d; Keras and this class do not: nn::WeightDecay decays weights first. Requires
/// stored gradients, and memory for a direction of each element.
struct Lamb {
  static constexpr std::string_view name = "Lamb";
  static constexpr bool scales_by_norms = true;

  float learning_rate = 1e-3f;
  /// The decay of the first moment, at least 0 and below 1.
  float beta_1 = 0.9f;
  /// The decay of the second moment, at least 0 and below 1.
  float beta_2 = 0.999f;
  float epsilon = 1e-7f;  ///< above 0: otherwise a weight without gradients makes its parameter's norm NaN

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_decay(name, "beta_1", beta_1);
    detail::require_decay(name, "beta_2", beta_2);
    detail::require_positive(name, "epsilon", epsilon);
  }

  /// The functor of a step, with two passes (ScalesByNorms).
  template <class T>
  struct Update {
    static constexpr std::array<std::string_view, 2> slots{"momentum", "velocity"};
    /// The learning rate of the step.
    T rate;
    /// 1 - beta_1.
    T keep_1;
    /// 1 - beta_2.
    T keep_2;
    /// The bias correction of the first moment.
    T correction_1;
    /// The bias correction of the second moment.
    T correction_2;
    /// Prevents division by 0.
    T epsilon;
    DIST_HD DIST_ALWAYS_INLINE T direction(T gradient, T* slot) const {
      using detail::root;
      slot[0] += keep_1 * (gradient - slot[0]);
      slot[1] += keep_2 * (gradient * gradient - slot[1]);
      return slot[0] * correction_1 / (root(slot[1] * correction_2) + epsilon);
    }
    DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T direction, T*) const { return weight - rate * direction; }
  };

  /// Calls `apply(update)` with the functor of step `iteration` (from 1).
  template <class T, class Apply>
  void with_update(std::int64_t iteration, Apply&& apply) const {
    static constexpr detail::UpdateParts parts{.scales_direction = true};
    const auto steps = static_cast<double>(iteration);
    const auto correction = [&](float beta) { return static_cast<T>(1 / (1 - std::pow(double{beta}, steps))); };
    const Update<T> update{T(learning_rate),
                           static_cast<T>(1 - double{beta_1}),
                           static_cast<T>(1 - double{beta_2}),
                           correction(beta_1),
                           correction(beta_2),
                           T(epsilon)};
    apply(detail::ExtendedUpdate<Update<T>, T, parts>{update});
  }
};

}  // namespace dist::nn
