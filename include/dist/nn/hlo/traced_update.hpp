#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/nn/gradient_clipping.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/optimizers/optimizer_function.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace dist::hlo {

// What the functors of optimizers alone call, for traced arrays: found by their namespace.

template <class T>
[[nodiscard]] Dynamic<T> root(Dynamic<T> x) {
  return sqrt(x);
}
/// Finite for 0, as for numbers of the host.
template <class T>
[[nodiscard]] Dynamic<T> inverse_root(Dynamic<T> x) {
  return rsqrt(max(x, Dynamic<T>{std::numeric_limits<T>::min()}));
}

}  // namespace dist::hlo

namespace dist::nn {

/// How many numbers a step of an optimizer has at most.
inline constexpr std::size_t most_step_numbers = 16;
/// The numbers of a step of an optimizer, as an argument of a program: what the host works out for each step, such as Adam's
/// correction for the moments' start at zero or the learning rate of a schedule, so that one program does all steps.
using StepNumbers = hlo::Traced<float, most_step_numbers>;

/// A parameter in a step of an optimizer that is traced.
struct TracedParameter {
  hlo::Dynamic<float> weights;
  hlo::Dynamic<float> gradient;
  std::vector<hlo::Dynamic<float>> slots = {};  ///< by their places in the functor's list
  bool decays = true;                           ///< unless its weights are left out of the decay
};

namespace detail {

/// The numbers of a functor for elements of type T, one after another. All that the functor of an optimizer has are numbers.
template <class Update, class T>
struct FunctorNumbers {
  static_assert(sizeof(Update) % sizeof(T) == 0, "the functor of an optimizer that is traced has only numbers");
  static constexpr std::size_t count = sizeof(Update) / sizeof(T);

  static void read(const Update& update, float* to) {
    const auto numbers = std::bit_cast<std::array<float, count>>(update);
    std::copy(numbers.begin(), numbers.end(), to);
  }
  /// The functor with the numbers from `First` on.
  template <std::size_t First>
  [[nodiscard]] static Update make(StepNumbers numbers) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return Update{T{number<First + I>(numbers)}...}; }
    (std::make_index_sequence<count>{});
  }
  template <std::size_t Which>
  [[nodiscard]] static hlo::Traced<float> number(StepNumbers numbers) {
    return hlo::reshape<>(hlo::slice<0, Which, 1>(numbers));
  }
};
/// Of one with options: its own numbers are behind those of the functor inside.
template <class Inner, class T, UpdateParts parts>
struct FunctorNumbers<ExtendedUpdate<Inner, T, parts>, T> {
  using Update = ExtendedUpdate<Inner, T, parts>;
  using Before = FunctorNumbers<Inner, T>;
  static constexpr std::size_t own = Before::count;
  static constexpr std::size_t count = own + 5;

  static void read(const Update& update, float* to) {
    Before::read(update.update, to);
    const std::array<float, 5> numbers{update.limit, update.scale, update.decay, update.keep_average,
                                       update.overwrite != 0 ? 1.0F : 0.0F};
    std::copy(numbers.begin(), numbers.end(), to + own);
  }
  /// Without the last number: see `overwrites`.
  template <std::size_t First>
  [[nodiscard]] static Update make(StepNumbers numbers) {
    const auto number = [&]<std::size_t Which>() { return T{Before::template number<First + own + Which>(numbers)}; };
    return Update{Before::template make<First>(numbers), number.template operator()<0>(),
                  number.template operator()<1>(), number.template operator()<2>(), number.template operator()<3>()};
  }
  template <std::size_t Which>
  [[nodiscard]] static hlo::Traced<float> number(StepNumbers numbers) {
    return Before::template number<Which>(numbers);
  }
  /// Whether the weights become their average in this step.
  [[nodiscard]] static hlo::Traced<bool> overwrites(StepNumbers numbers) { return number<own + 4>(numbers) != 0; }
};

template <class Update>
inline constexpr bool has_options = false;
template <class Inner, class T, UpdateParts parts>
inline constexpr bool has_options<ExtendedUpdate<Inner, T, parts>> = true;

/// The sum of the squares of an array's elements, in double as on the host.
[[nodiscard]] inline hlo::Dynamic<double> square_of(hlo::Dynamic<float> values) {
  const hlo::Dynamic<double> wide = values.as<double>();
  return (wide * wide).sum();
}

/// By what the gradient of each parameter is multiplied where norms are clipped.
template <class O>
[[nodiscard]] std::vector<hlo::Dynamic<float>> clipping_scales(const O& optimizer,
                                                               std::span<const TracedParameter> parameters) {
  std::vector<hlo::Dynamic<double>> squares;
  for (const TracedParameter& parameter : parameters) squares.push_back(square_of(parameter.gradient));
  std::vector<hlo::Dynamic<float>> scales;
  if constexpr (has_option<O, ClipNorm>) {
    for (const hlo::Dynamic<double>& square : squares)
      scales.push_back(scale_of(optimizer.template get<ClipNorm>(), sqrt(square)).template as<float>());
  } else {
    const auto total = std::accumulate(squares.begin(), squares.end(), hlo::Dynamic<double>{0});
    scales.assign(squares.size(), scale_of(optimizer.template get<GlobalClipNorm>(), sqrt(total)).template as<float>());
  }
  return scales;
}

/// As dist::detail::trust_ratio. `decay` is what weights lose first.
[[nodiscard]] inline hlo::Dynamic<float> traced_trust_ratio(hlo::Dynamic<float> weights, hlo::Dynamic<float> direction,
                                                            hlo::Dynamic<float> decay) {
  using Number = hlo::Dynamic<double>;
  const Number of_weights = sqrt(square_of(weights)) * (Number{1} - decay.as<double>());
  const Number of_direction = sqrt(square_of(direction));
  const auto have_norms = (of_weights > Number{0}) & (of_direction > Number{0});
  return select(have_norms, of_weights / of_direction, Number{1}).as<float>();
}

}  // namespace detail

/// The numbers of step `iteration` (from 1), for the argument of type StepNumbers.
template <OptimizerFunction O>
[[nodiscard]] Tensor<float> step_numbers(const O& optimizer, std::int64_t iteration) {
  Tensor<float> numbers{StepNumbers::shape()};
  for (float& number : numbers.elements()) number = 0;
  optimizer.template with_update<float>(iteration, [&](const auto update) {
    using Numbers = detail::FunctorNumbers<std::remove_const_t<decltype(update)>, float>;
    static_assert(Numbers::count <= most_step_numbers, "an optimizer has at most nn::most_step_numbers numbers");
    Numbers::read(update, numbers.data());
  });
  return numbers;
}

/// The step of an optimizer in a program that is traced: changes the weights and slots of all parameters. The arithmetic is
/// that of the optimizer's functor, called once for all elements of a parameter. Gradients are those of an update, also with
/// nn::AccumulateGradients. Throws InvalidArgument unless each has as many slots as the optimizer has with its options.
template <OptimizerFunction O>
void traced_update(const O& optimizer, StepNumbers numbers, std::span<TracedParameter> parameters) {
  using Array = hlo::Dynamic<float>;
  optimizer.template with_update<Array>(1, [&](const auto functor) {
    using Update = std::remove_const_t<decltype(functor)>;
    using Numbers = detail::FunctorNumbers<Update, Array>;
    const Update of_step = Numbers::template make<0>(numbers);
    [[maybe_unused]] std::vector<Array> scales;
    if constexpr (has_option<O, ClipNorm> || has_option<O, GlobalClipNorm>)
      scales = detail::clipping_scales(optimizer, parameters);
    for (std::size_t which = 0; which < parameters.size(); ++which) {
      TracedParameter& parameter = parameters[which];
      if (parameter.slots.size() != Update::slots.size())
        throw InvalidArgument(concat("A step of ", O::name, " cannot be traced"),
                              concat("a parameter is given ", parameter.slots.size(), " slots, and has ",
                                     Update::slots.size(), " with these options"),
                              "Give it an array for each of its slots");
      Update update = of_step;
      Array* const slots = parameter.slots.data();
      Array gradient = parameter.gradient;
      if constexpr (detail::has_options<Update>) {
        if (!parameter.decays) update.decay = 0;
        if (!scales.empty()) update.scale = scales[which];
        if constexpr (ScalesByNorms<O>) {
          gradient = update.direction(gradient, slots);
          update.scale = detail::traced_trust_ratio(parameter.weights, gradient, update.decay);
        }
      }
      parameter.weights = update(parameter.weights, gradient, slots);
      if constexpr (has_option<O, AverageWeights>)
        parameter.weights = select(Numbers::overwrites(numbers), parameter.slots.back(), parameter.weights);
    }
  });
}

}  // namespace dist::nn
