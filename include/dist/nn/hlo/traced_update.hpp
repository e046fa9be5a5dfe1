#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/nn/gradient_clipping.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/optimizers/optimizer_function.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/segments.hpp>
#include <dist/nn/optimizers/with.hpp>

namespace dist::hlo {

// What the functors of optimizers alone call, for traced arrays: found by their namespace.

template <class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> root(Traced<T, Extents...> x) {
  return sqrt(x);
}
/// Finite for 0, as for numbers of the host.
template <class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> inverse_root(Traced<T, Extents...> x) {
  return rsqrt(max(x, Traced<T, Extents...>{std::numeric_limits<T>::min()}));
}

}  // namespace dist::hlo

namespace dist::nn {

/// How many numbers a step of an optimizer has at most.
inline constexpr std::size_t most_step_numbers = 16;
/// The numbers of a step of an optimizer, as an argument of a program: what the host works out for each step, such as Adam's
/// correction for the moments' start at zero or the learning rate of a schedule, so that one program does all steps.
using StepNumbers = hlo::Traced<float, most_step_numbers>;

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

/// The sum of the squares of each segment's elements, in double as on the host.
template <hlo::TracedArray A>
[[nodiscard]] std::vector<hlo::Traced<double>> squares_of(A values, std::span<const Segment> segments) {
  std::vector<hlo::Traced<double>> squares;
  const hlo::Value all = hlo::untyped::reshape(values.template as<double>().value(), Shape{A::elements});
  std::size_t first = 0;
  for (const Segment& segment : segments) {
    const hlo::Value part = hlo::untyped::slice_along(all, 0, first, segment.end);
    squares.emplace_back(hlo::untyped::reduce("add", hlo::untyped::multiply(part, part), hlo::literal(0.0), {0}));
    first = segment.end;
  }
  return squares;
}

/// A number of each segment, for each of its elements.
template <hlo::TracedArray A>
[[nodiscard]] A along_segments(const std::vector<hlo::Traced<float>>& numbers, std::span<const Segment> segments) {
  std::vector<hlo::Value> parts;
  std::size_t first = 0;
  for (std::size_t which = 0; which < segments.size(); ++which) {
    parts.push_back(hlo::untyped::broadcast(numbers[which].value(), Shape{segments[which].end - first}, {}));
    first = segments[which].end;
  }
  return A{hlo::untyped::reshape(hlo::untyped::concatenate(parts, 0), A::shape())};
}

/// By what each element of a gradient is multiplied where its norm is clipped.
template <class O, hlo::TracedArray A>
[[nodiscard]] A clipping_scale(const O& optimizer, A gradient, std::span<const Segment> segments) {
  const std::vector<hlo::Traced<double>> squares = squares_of(gradient, segments);
  if constexpr (has_option<O, ClipNorm>) {
    std::vector<hlo::Traced<float>> scales;
    for (const hlo::Traced<double>& square : squares)
      scales.push_back(scale_of(optimizer.template get<ClipNorm>(), sqrt(square)).template as<float>());
    return along_segments<A>(scales, segments);
  } else {
    hlo::Traced<double> total = squares[0];
    for (std::size_t which = 1; which < squares.size(); ++which) total += squares[which];
    return scale_of(optimizer.template get<GlobalClipNorm>(), sqrt(total)).template as<float>();
  }
}

/// As dist::detail::trust_ratio, of each parameter whose weights and direction these are. `decay` is what weights lose first.
template <hlo::TracedArray A>
[[nodiscard]] A trust_ratios(A weights, A directions, hlo::Traced<float> decay, std::span<const Segment> segments) {
  using Number = hlo::Traced<double>;
  const std::vector<Number> of_weights = squares_of(weights, segments),
                            of_directions = squares_of(directions, segments);
  std::vector<hlo::Traced<float>> ratios;
  for (std::size_t which = 0; which < segments.size(); ++which) {
    Number weight = sqrt(of_weights[which]);
    if (segments[which].decays) weight *= Number{1} - decay.template as<double>();
    const Number direction = sqrt(of_directions[which]);
    const auto have_norms = (weight > Number{0}) & (direction > Number{0});
    ratios.push_back(hlo::select(have_norms, weight / direction, Number{1}).template as<float>());
  }
  return along_segments<A>(ratios, segments);
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

/// The step of an optimizer in a program that is traced: the new weights, from these and their gradient, of one shape, and the
/// new slots in the place of the old ones. The arithmetic is that of the optimizer's functor, called once for all elements.
/// `segments` are the parameters, one after another, which weight decay may leave out and whose norms count each on its own
/// (detail::segments_of); none means that all elements are of one. Throws InvalidArgument unless there are as many slots as
/// the optimizer has with its options.
template <OptimizerFunction O, std::size_t Slots, std::size_t... Extents>
[[nodiscard]] hlo::Traced<float, Extents...> traced_update(const O& optimizer, StepNumbers numbers,
                                                           hlo::Traced<float, Extents...> weights,
                                                           hlo::Traced<float, Extents...> gradient,
                                                           std::array<hlo::Traced<float, Extents...>, Slots>& slots,
                                                           std::span<const detail::Segment> segments = {}) {
  static_assert(
      !has_option<O, AccumulateGradients>,
      "nn::AccumulateGradients keeps gradients from one call to the next, which a step that is traced does not: "
      "give it larger batches, or run the step instead of compiling it");
  using Array = hlo::Traced<float, Extents...>;
  const std::array<detail::Segment, 1> all{detail::Segment{.end = Array::elements}};
  if (segments.empty()) segments = all;
  Array updated = weights;
  optimizer.template with_update<Array>(1, [&](const auto functor) {
    using Update = std::remove_const_t<decltype(functor)>;
    using Numbers = detail::FunctorNumbers<Update, Array>;
    if (Slots != Update::slots.size())
      throw InvalidArgument(
          text("A step of ", O::name, " cannot be traced"),
          text("it is given ", Slots, " slots, and has ", Update::slots.size(), " with these options"),
          "Give it an array for each of its slots");
    Update update = Numbers::template make<0>(numbers);
    if constexpr (!detail::has_options<Update>) {
      updated = update(weights, gradient, slots.data());
    } else {
      const hlo::Traced<float> decay = Numbers::template number<Numbers::own + 2>(numbers);
      if constexpr (has_option<O, WeightDecay>) {
        std::vector<hlo::Traced<float>> decays;
        for (const detail::Segment& segment : segments) decays.push_back(segment.decays ? decay : 0);
        update.decay = detail::along_segments<Array>(decays, segments);
      }
      if constexpr (has_option<O, ClipNorm> || has_option<O, GlobalClipNorm>)
        update.scale = detail::clipping_scale(optimizer, gradient, segments);
      if constexpr (ScalesByNorms<O>) {
        gradient = update.direction(gradient, slots.data());
        update.scale = detail::trust_ratios(weights, gradient, decay, segments);
      }
      updated = update(weights, gradient, slots.data());
      if constexpr (has_option<O, AverageWeights>)
        updated = hlo::select(Numbers::overwrites(numbers), slots.back(), updated);
    }
  });
  return updated;
}

}  // namespace dist::nn
