/// Options of optimizers: arguments of `nn::With`, with Keras' formulas. `check()` throws InvalidArgument for numbers
/// out of range.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/nn/check.hpp>

namespace dist::nn {

namespace detail {

struct IgnoreUpdate {
  template <class Update>
  void operator()(Update) const {}
};

}  // namespace detail

/// An optimizer's arithmetic: a struct of hyper-parameters. `name` is for messages and for the names of variables, and
/// `learning_rate` is the factor of a step, at least 0. `check()` throws InvalidArgument if a hyper-parameter is out of
/// range; options of nn::With have such a function, too. `with_update<T>(iteration, apply)` calls `apply(update)` with
/// the functor of this step.
///
/// The functor is trivially copyable. `update(weight, gradient, slots)` returns the new weight and changes the
/// element's slots in registers, so that CPU loops, rings and GPU kernels can inline it. `Update::slots` are their
/// names.
template <class O>
concept OptimizerFunction = std::copyable<O> &&
    requires(O optimizer, std::int64_t iteration, detail::IgnoreUpdate apply) {
  { O::name } -> std::convertible_to<std::string_view>;
  { optimizer.learning_rate } -> std::same_as<float&>;
  optimizer.check();
  optimizer.template with_update<float>(iteration, apply);
};

namespace detail {

/// Returns the names of an optimizer's slots.
template <class T, OptimizerFunction O>
[[nodiscard]] std::span<const std::string_view> slot_names(const O& function) {
  std::span<const std::string_view> names;
  function.template with_update<T>(1, [&](const auto update) { names = decltype(update)::slots; });
  return names;
}

}  // namespace detail

/// An optimizer with a step scaled by each parameter's norms, such as Lamb: `scales_by_norms` is true. Its functor has
/// two passes. `update.direction(gradient, slots)` changes the slots and returns the direction. Directions are then
/// multiplied by the parameter's trust ratio, the norm of the weights over the norm of the direction, or 1 if one is 0.
/// `update(weight, direction, slots)` applies them.
template <class O>
concept ScalesByNorms = O::scales_by_norms;

/// Clips elements of the aggregated gradient to [-limit, limit] (spec P10; Keras' clipvalue).
struct ClipValue {
  float limit;  ///< above 0

  void check() const { detail::require_positive("ClipValue", "limit", limit); }
};

/// Multiplies each parameter's aggregated gradient by norm / max(its L2 norm, norm) (spec P10; Keras' clipnorm). Until
/// the update each replica stores its share of the sums.
struct ClipNorm {
  float norm;  ///< above 0

  void check() const { detail::require_positive("ClipNorm", "norm", norm); }
};

/// Multiplies aggregated gradients by norm min(1 / n, 1 / norm), with their global L2 norm n (spec P10; Keras'
/// global_clipnorm). If one is not finite, all become NaN, as in Keras. Until the update each replica stores its share
/// of the sums.
struct GlobalClipNorm {
  float norm;  ///< above 0

  void check() const { detail::require_positive("GlobalClipNorm", "norm", norm); }
};

/// Decoupled weight decay (Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019): w -= rate lr w
/// before each update (spec P11; Keras' weight_decay).
struct WeightDecay {
  float rate = 0.004f;  ///< at least 0

  /// Parts of the names of parameters that do not decay, such as "bias" or "dense_1/" (Keras'
  /// exclude_from_weight_decay).
  std::vector<std::string> exclude = {};

  void check() const { detail::require_not_negative("WeightDecay", "rate", rate); }
  /// True if no part of `exclude` occurs in the parameter's name.
  [[nodiscard]] bool applies_to(std::string_view parameter) const;
};

/// An average of the weights, a = momentum a + (1 - momentum) w after each update, in the last slot, "average". After
/// the first update it equals the weights (spec P11; Keras' use_ema).
struct AverageWeights {
  float momentum = 0.99f;  ///< the part of the old average that remains, from 0 to 1

  /// Updates after which the average replaces the weights; 0 for never.
  std::int64_t overwrite_frequency = 0;

  void check() const;
};

/// `apply_gradients` adds up gradients of `steps` calls on each replica, without communication, and updates with their
/// mean in the last one (Keras' gradient_accumulation_steps).
struct AccumulateGradients {
  std::int64_t steps;  ///< number of calls per update

  void check() const;
};

/// A Model does not scale the loss of a network that multiplies Float16 numbers (Keras' auto_scale_loss=False), because
/// the loss has its own factor. Without this option see LossScale.
struct NoLossScale {};

/// True for options that clip.
template <class Option>
inline constexpr bool is_clipping =
    std::is_same_v<Option, ClipValue> || std::is_same_v<Option, ClipNorm> || std::is_same_v<Option, GlobalClipNorm>;
/// True for options other than schedules.
template <class Option>
inline constexpr bool is_optimizer_option =
    is_clipping<Option> || std::is_same_v<Option, WeightDecay> || std::is_same_v<Option, AverageWeights> ||
    std::is_same_v<Option, AccumulateGradients> || std::is_same_v<Option, NoLossScale>;

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/nn/optimizers/options.ipp>
#endif
