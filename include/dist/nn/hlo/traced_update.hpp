#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/nn/gradient_clipping.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace dist::hlo {

// The functions that only optimizer functors call on traced arrays.

/// Returns the square root.
template <class T>
[[nodiscard]] Dynamic<T> root(Dynamic<T> x) {
  return sqrt(x);
}
/// Finite for 0, like on the host.
template <class T>
[[nodiscard]] Dynamic<T> inverse_root(Dynamic<T> x) {
  return rsqrt(max(x, Dynamic<T>{std::numeric_limits<T>::min()}));
}

}  // namespace dist::hlo

namespace dist::nn {

/// The maximum number of values in StepNumbers.
inline constexpr std::size_t most_step_numbers = 16;
/// Values that the host computes for each step, such as Adam's bias correction or a scheduled learning rate. As an
/// argument of the program, they let one program serve all steps.
using StepNumbers = hlo::Traced<float, most_step_numbers>;

/// A parameter in a traced optimizer step.
struct TracedParameter {
  hlo::Dynamic<float> weights;                  ///< values before the step
  hlo::Dynamic<float> gradient;                 ///< values that the optimizer applies
  std::vector<hlo::Dynamic<float>> slots = {};  ///< in the order of the functor's slots
  bool decays = true;                           ///< false if weight decay excludes this parameter
};

namespace detail {

/// Reads and sets the numbers of a functor for elements of type T. Such functors only have number members.
template <class Update, class T>
struct FunctorNumbers {
  static_assert(sizeof(Update) % sizeof(T) == 0, "the update functor of a traced optimizer may contain only numbers");
  static constexpr std::size_t count = sizeof(Update) / sizeof(T);

  static void read(const Update& update, float* to) {
    const auto numbers = std::bit_cast<std::array<float, count>>(update);
    std::copy(numbers.begin(), numbers.end(), to);
  }
  /// Returns a functor with the numbers from `First` on.
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
/// The numbers of a functor with options: the inner functor's, then its own.
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
  /// Returns a functor without the last number, which `overwrites` reads.
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
  /// True if the step replaces weights by their average.
  [[nodiscard]] static hlo::Traced<bool> overwrites(StepNumbers numbers) { return number<own + 4>(numbers) != 0; }
};

template <class Update>
inline constexpr bool has_options = false;
template <class Inner, class T, UpdateParts parts>
inline constexpr bool has_options<ExtendedUpdate<Inner, T, parts>> = true;

/// The sum of squares, in double like on the host.
[[nodiscard]] inline hlo::Dynamic<double> square_of(hlo::Dynamic<float> values) {
  const hlo::Dynamic<double> wide = values.as<double>();
  return (wide * wide).sum();
}

/// The factors of the gradients if norms are clipped.
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

/// The traced counterpart of dist::detail::trust_ratio. `decay` is the share of the weights that decays first.
[[nodiscard]] inline hlo::Dynamic<float> traced_trust_ratio(hlo::Dynamic<float> weights, hlo::Dynamic<float> direction,
                                                            hlo::Dynamic<float> decay) {
  using Number = hlo::Dynamic<double>;
  const Number of_weights = sqrt(square_of(weights)) * (Number{1} - decay.as<double>());
  const Number of_direction = sqrt(square_of(direction));
  const auto have_norms = (of_weights > Number{0}) & (of_direction > Number{0});
  return select(have_norms, of_weights / of_direction, Number{1}).as<float>();
}

}  // namespace detail

/// Returns the StepNumbers of step `iteration`, from 1.
template <OptimizerFunction O>
[[nodiscard]] Tensor<float> step_numbers(const O& optimizer, std::int64_t iteration) {
  Tensor<float> numbers{StepNumbers::shape()};
  for (float& number : numbers.elements()) number = 0;
  optimizer.template with_update<float>(iteration, [&](const auto update) {
    using Numbers = detail::FunctorNumbers<std::remove_const_t<decltype(update)>, float>;
    static_assert(Numbers::count <= most_step_numbers,
                  "the update functor of an optimizer may have at most nn::most_step_numbers numbers");
    Numbers::read(update, numbers.data());
  });
  return numbers;
}

/// Traces an optimizer step, which updates weights and slots. The optimizer's functor is called once per parameter,
/// on all elements. Does not accumulate gradients, even with nn::AccumulateGradients. Throws InvalidArgument unless
/// each parameter has as many slots as the optimizer with its options.
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
                              concat("a parameter was given ", parameter.slots.size(), " slots, but has ",
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
