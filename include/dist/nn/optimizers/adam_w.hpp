#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include <dist/nn/check.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace dist::nn {

/// Adam with decoupled weight decay (Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019), with
/// Keras' formula and defaults: w -= lr weight_decay w, then as Adam. To leave parameters out of the decay, give Adam
/// the option instead: `nn::With{nn::Adam{}, nn::WeightDecay{.rate = 0.004f, .exclude = {"bias"}}}`.
struct AdamW {
  static constexpr std::string_view name = "AdamW";

  float learning_rate = 1e-3f;
  float weight_decay = 0.004f;
  float beta_1 = 0.9f;
  float beta_2 = 0.999f;
  float epsilon = 1e-7f;
  bool amsgrad = false;

  /// Throws InvalidArgument.
  void check() const {
    detail::require_not_negative(name, "learning_rate", learning_rate);
    detail::require_not_negative(name, "weight_decay", weight_decay);
    detail::require_decay(name, "beta_1", beta_1);
    detail::require_decay(name, "beta_2", beta_2);
    detail::require_not_negative(name, "epsilon", epsilon);
  }

  /// Hands the update of step `iteration` (from 1) to `apply`, as a functor for elements of type T.
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
