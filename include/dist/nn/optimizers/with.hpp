#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/schedules/decays.hpp>

namespace dist::nn {

namespace detail {

/// An update's options, as a template argument, so that unused ones cost nothing.
struct UpdateParts {
  bool clips_value = false;
  bool scales_gradient = false;
  bool decays_weight = false;
  bool averages = false;
  bool scales_direction = false;  ///< two passes, for ScalesByNorms
};

/// An optimizer's functor with options in Keras' order: clipping, weight decay, update, average, all in registers, in
/// one pass.
template <class Update, class T, UpdateParts parts>
struct ExtendedUpdate {
  static constexpr std::size_t inner_slots = Update::slots.size();
  static constexpr std::array<std::string_view, inner_slots + (parts.averages ? 1 : 0)> slots = [] {
    std::array<std::string_view, inner_slots + (parts.averages ? 1 : 0)> names{};
    std::size_t place = 0;
    for (const std::string_view name : Update::slots) names[place++] = name;
    if constexpr (parts.averages) names[inner_slots] = "average";
    return names;
  }();

  static constexpr bool has_two_passes = parts.scales_direction;

  Update update;
  T limit = 0;                  ///< of an element of the gradient
  T scale = 1;                  ///< of the gradient; of the direction in the second pass
  T decay = 0;                  ///< fraction of the weight to subtract
  T keep_average = 0;           ///< weight of the old average in the new one
  std::uint32_t overwrite = 0;  ///< true if the average replaces the weight; GCC would not vectorise with a bool

  DIST_HD DIST_ALWAYS_INLINE T operator()(T weight, T gradient, T* slot) const {
    gradient = parts.scales_direction ? gradient * scale : clipped(gradient);
    if constexpr (parts.decays_weight) weight -= weight * decay;
    weight = update(weight, gradient, slot);
    if constexpr (parts.averages) {
      slot[inner_slots] = keep_average * slot[inner_slots] + (T{1} - keep_average) * weight;
      if (overwrite) weight = slot[inner_slots];
    }
    return weight;
  }
  /// Returns the direction, in the first pass.
  DIST_HD DIST_ALWAYS_INLINE T direction(T gradient, T* slot) const {
    return update.direction(clipped(gradient), slot);
  }

 private:
  DIST_HD DIST_ALWAYS_INLINE T clipped(T gradient) const {
    if constexpr (parts.clips_value)
      gradient = select(gradient < -limit, -limit, select(gradient > limit, limit, gradient));
    if constexpr (parts.scales_gradient) gradient *= scale;
    return gradient;
  }
};

}  // namespace detail

template <class O, class... Options>
struct With;

namespace detail {
template <class O>
inline constexpr bool is_with = dist::detail::is_specialization<O, With>;

/// An optimizer with weight decay, such as AdamW.
template <class O>
concept DecaysWeights = requires(const O optimizer) {
  optimizer.weight_decay;
};

/// True if all types differ.
template <class...>
inline constexpr bool all_different = true;
template <class First, class... Rest>
inline constexpr bool all_different<First, Rest...> = !(std::is_same_v<First, Rest> || ...) && all_different<Rest...>;
}  // namespace detail

/// An optimizer with options (options.hpp):
///
///     nn::Optimizer optimizer{strategy, net, nn::With{nn::Adam{}, nn::GlobalClipNorm{1.0f}, nn::WeightDecay{0.01f}}};
///
/// A learning-rate schedule is an option, too (LearningRateSchedule). Options are types, so an optimizer without them
/// has no overhead, and invalid combinations do not compile.
template <class O, class... Options>
struct With : O {
  static_assert(!detail::is_with<O>,
                "an nn::With inside another would lose its options: give all options to one nn::With");
  static_assert(((is_optimizer_option<Options> || LearningRateSchedule<Options>)&&...),
                "nn::With takes the options nn::ClipValue, nn::ClipNorm, nn::GlobalClipNorm, nn::WeightDecay, "
                "nn::AverageWeights, nn::AccumulateGradients and nn::NoLossScale, and an nn::LearningRateSchedule");
  static_assert((0 + ... + (LearningRateSchedule<Options> ? 1 : 0)) <= 1,
                "nn::With takes only one nn::LearningRateSchedule: use nn::WarmUp to put one after a warm-up");
  static_assert((0 + ... + (is_clipping<Options> ? 1 : 0)) <= 1,
                "nn::With takes only one of nn::ClipValue, nn::ClipNorm and nn::GlobalClipNorm");
  static_assert(detail::all_different<Options...>, "nn::With takes each option once: leave out the repetition");
  static_assert(!detail::DecaysWeights<O> || !(std::is_same_v<Options, WeightDecay> || ...),
                "this optimizer already decays weights, like nn::AdamW: leave out nn::WeightDecay, or give it to an "
                "optimizer without decay, such as nn::Adam");

  /// The options, in the order of the constructor's arguments.
  std::tuple<Options...> options;

  /// Adds options to an optimizer.
  explicit With(O optimizer, Options... given) : O(std::move(optimizer)), options(std::move(given)...) {}

  /// The constructor's arguments, for archives.
  [[nodiscard]] auto parts() const { return std::tie(static_cast<const O&>(*this), options); }
  [[nodiscard]] static With of_parts(O optimizer, std::tuple<Options...> given) {
    return std::apply([&](auto&... option) { return With{std::move(optimizer), std::move(option)...}; }, given);
  }

  /// True if there is an option of this type.
  template <class Option>
  static constexpr bool has = (std::is_same_v<Option, Options> || ...);
  /// True if an option is a LearningRateSchedule.
  static constexpr bool has_schedule = (LearningRateSchedule<Options> || ...);
  /// The option of this type.
  template <class Option>
  [[nodiscard]] const Option& get() const {
    return std::get<Option>(options);
  }

  /// Throws InvalidArgument.
  void check() const {
    O::check();
    std::apply([](const auto&... option) { (detail::check_if_can(option), ...); }, options);
  }

  /// Returns the learning rate of update `step`, from 0. Throws InvalidArgument if a schedule returns a negative rate
  /// or NaN.
  [[nodiscard]] float learning_rate_of([[maybe_unused]] std::int64_t step) const {
    float rate = this->learning_rate;
    std::apply([&](const auto&... option) { (take_rate(option, step, rate), ...); }, options);
    return rate;
  }

  /// Calls `apply(update)` with the functor of step `iteration` (from 1). The caller sets its `scale`, and `decay` = 0
  /// for excluded parameters.
  template <class T, class Apply>
  void with_update(std::int64_t iteration, Apply&& apply) const {
    static constexpr detail::UpdateParts parts{.clips_value = has<ClipValue>,
                                               .scales_gradient = has<ClipNorm> || has<GlobalClipNorm>,
                                               .decays_weight = has<WeightDecay>,
                                               .averages = has<AverageWeights>,
                                               .scales_direction = ScalesByNorms<O>};
    O function{*this};
    function.learning_rate = learning_rate_of(iteration - 1);
    function.template with_update<T>(iteration, [&](const auto update) {
      detail::ExtendedUpdate<std::remove_const_t<decltype(update)>, T, parts> extended{update};
      if constexpr (has<ClipValue>) extended.limit = T(get<ClipValue>().limit);
      if constexpr (has<WeightDecay>)
        extended.decay = static_cast<T>(double{get<WeightDecay>().rate} * double{function.learning_rate});
      if constexpr (has<AverageWeights>) {
        const AverageWeights& average = get<AverageWeights>();
        extended.keep_average = iteration == 1 ? T{0} : T(average.momentum);
        extended.overwrite = average.overwrite_frequency > 0 && iteration % average.overwrite_frequency == 0;
      }
      apply(extended);
    });
  }

 private:
  template <class Option>
  static void take_rate(const Option& option, std::int64_t step, float& rate) {
    if constexpr (LearningRateSchedule<Option>) {
      rate = static_cast<float>(static_cast<double>(option(step)));
      detail::require_not_negative(O::name, "learning_rate", rate);
    }
  }
};

/// Deduces the template arguments.
template <class O, class... Options>
With(O, Options...) -> With<O, Options...>;

/// True if optimizer `O` has this option.
template <class O, class Option>
inline constexpr bool has_option = [] {
  if constexpr (detail::is_with<O>) {
    return O::template has<Option>;
  } else {
    return false;
  }
}();

namespace detail {

/// True if the parameter decays, or the optimizer has no WeightDecay.
template <class O>
[[nodiscard]] bool decays(const O& optimizer, std::string_view parameter) {
  if constexpr (has_option<O, WeightDecay>)
    return optimizer.template get<WeightDecay>().applies_to(parameter);
  else
    return true;
}

}  // namespace detail

/// True if optimizer `O` has a schedule.
template <class O>
inline constexpr bool has_schedule = [] {
  if constexpr (detail::is_with<O>) {
    return O::has_schedule;
  } else {
    return false;
  }
}();

namespace detail {

/// Returns the optimizer with another learning rate. Throws InvalidArgument for a rate out of range, and with a
/// schedule.
template <class O>
[[nodiscard]] O with_learning_rate(O function, float rate) {
  if constexpr (has_schedule<O>)
    throw InvalidArgument(concat("The learning rate of optimizer ", O::name, " cannot be set"),
                          concat("it follows the schedule given to nn::With, and ", rate, " would not be used"),
                          "Leave out the schedule, or let it return the rate of each step");
  function.learning_rate = rate;
  function.check();
  return function;
}

}  // namespace detail

}  // namespace dist::nn
