#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace dist::nn {

/// Adam (Kingma, Ba: "Adam: a method for stochastic optimization", ICLR 2015), in the form of the end of section 2,
/// with Keras' formulas and defaults. In step t, from 1:
///
///     m += (1 - beta_1) (g - m);  v += (1 - beta_2) (g^2 - v)
///     w -= lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon)
///
/// `amsgrad` divides by the root of the largest previous v (Reddi, Kale, Kumar: "On the convergence of Adam and
/// beyond", ICLR 2018).
struct Adam {
  static constexpr std::string_view name = "Adam";

  float learning_rate = 1e-3f;
  /// The decay of the first moment, at least 0 and below 1.
  float beta_1 = 0.9f;
  /// The decay of the second moment, at least 0 and below 1.
  float beta_2 = 0.999f;
  /// Prevents division by 0; added before the bias correction, as in Keras.
  float epsilon = 1e-7f;
  /// True to divide by the root of the largest second moment up to now.
  bool amsgrad = false;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_decay(name, "beta_1", beta_1);
    detail::require_decay(name, "beta_2", beta_2);
    detail::require_not_negative(name, "epsilon", epsilon);
  }

  /// The functor of a step.
  template <class T, bool Amsgrad>
  struct Update {
    static constexpr std::array<std::string_view, Amsgrad ? 3 : 2> slots = [] {
      std::array<std::string_view, Amsgrad ? 3 : 2> names{"momentum", "velocity"};
      if constexpr (Amsgrad) names[2] = "velocity_max";
      return names;
    }();
    /// The learning rate of the step, with bias correction.
    T rate;
    /// 1 - beta_1.
    T keep_1;
    /// 1 - beta_2.
    T keep_2;
    /// Prevents division by 0.
    T epsilon;
    DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T gradient, T* slot) const {
      slot[0] += keep_1 * (gradient - slot[0]);
      slot[1] += keep_2 * (gradient * gradient - slot[1]);
      T square = slot[1];
      if constexpr (Amsgrad) {
        using detail::greater;
        slot[2] = greater(slot[2], square);
        square = slot[2];
      }
      using detail::root;
      return weight - rate * slot[0] / (root(square) + epsilon);
    }
  };

  /// Calls `apply(update)` with the functor of step `iteration` (from 1).
  template <class T, class Apply>
  void with_update(std::int64_t iteration, Apply&& apply) const {
    const auto steps = static_cast<double>(iteration);
    const double correction = std::sqrt(1 - std::pow(double{beta_2}, steps)) / (1 - std::pow(double{beta_1}, steps));
    const T rate = static_cast<T>(double{learning_rate} * correction);
    const T keep_1 = static_cast<T>(1 - double{beta_1});
    const T keep_2 = static_cast<T>(1 - double{beta_2});
    if (amsgrad) return apply(Update<T, true>{rate, keep_1, keep_2, T(epsilon)});
    return apply(Update<T, false>{rate, keep_1, keep_2, T(epsilon)});
  }
};

/// Adam with decoupled weight decay (Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019), with
/// Keras' formula and defaults: w -= lr weight_decay w, then as Adam. To exclude parameters: `nn::With{nn::Adam{},
/// nn::WeightDecay{.rate = 0.004f, .exclude = {"bias"}}}`.
struct AdamW {
  static constexpr std::string_view name = "AdamW";

  float learning_rate = 1e-3f;
  /// The fraction of a weight that a step with learning rate 1 removes.
  float weight_decay = 0.004f;
  /// The decay of the first moment, at least 0 and below 1.
  float beta_1 = 0.9f;
  /// The decay of the second moment, at least 0 and below 1.
  float beta_2 = 0.999f;
  /// Prevents division by 0.
  float epsilon = 1e-7f;
  /// True to divide by the root of the largest second moment up to now.
  bool amsgrad = false;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_not_negative(name, "weight_decay", weight_decay);
    detail::require_decay(name, "beta_1", beta_1);
    detail::require_decay(name, "beta_2", beta_2);
    detail::require_not_negative(name, "epsilon", epsilon);
  }

  /// Calls `apply(update)` with the functor of step `iteration` (from 1).
  template <class T, class Apply>
  void with_update(std::int64_t iteration, Apply&& apply) const {
    static constexpr detail::UpdateParts parts{.decays_weight = true};
    const Adam adam{
        .learning_rate = learning_rate, .beta_1 = beta_1, .beta_2 = beta_2, .epsilon = epsilon, .amsgrad = amsgrad};
    adam.with_update<T>(iteration, [&](const auto update) {
      detail::ExtendedUpdate<std::remove_const_t<decltype(update)>, T, parts> extended{update};
      extended.decay = static_cast<T>(double{weight_decay} * double{learning_rate});
      apply(extended);
    });
  }
};

}  // namespace dist::nn
