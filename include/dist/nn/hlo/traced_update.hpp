#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <dist/core/tensor.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/choice.hpp>
#include <dist/nn/optimizers/optimizer_function.hpp>

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
inline constexpr std::size_t most_step_numbers = 8;
/// The numbers of a step of an optimizer, as an argument of a program: what the host works out for each step, such as Adam's
/// correction for the moments' start at zero, so that one program does all steps.
using StepNumbers = hlo::Traced<float, most_step_numbers>;

namespace detail {

/// How many numbers a functor for elements of type T has, which are all that it has.
template <class Update, class T>
inline constexpr std::size_t numbers_of = [] {
  static_assert(sizeof(Update) % sizeof(T) == 0 && sizeof(Update) / sizeof(T) <= most_step_numbers,
                "the functor of an optimizer that is traced has only numbers, and at most nn::most_step_numbers");
  return sizeof(Update) / sizeof(T);
}();

}  // namespace detail

/// The numbers of step `iteration` (from 1), for the argument of type StepNumbers.
template <OptimizerFunction O>
[[nodiscard]] Tensor<float> step_numbers(const O& optimizer, std::int64_t iteration) {
  Tensor<float> numbers{StepNumbers::shape()};
  for (float& number : numbers.elements()) number = 0;
  optimizer.template with_update<float>(iteration, [&](const auto update) {
    constexpr std::size_t count = detail::numbers_of<std::remove_const_t<decltype(update)>, float>;
    const auto values = std::bit_cast<std::array<float, count>>(update);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = values[i];
  });
  return numbers;
}

/// The step of an optimizer in a program that is traced: the new weights, from these and their gradient, of one shape, and the
/// new slots in the place of the old ones. The arithmetic is that of the optimizer's functor, called once for all elements.
/// Throws InvalidArgument unless there are as many slots as the optimizer has with its options.
template <OptimizerFunction O, std::size_t Slots, std::size_t... Extents>
[[nodiscard]] hlo::Traced<float, Extents...> traced_update(const O& optimizer, StepNumbers numbers,
                                                           hlo::Traced<float, Extents...> weights,
                                                           hlo::Traced<float, Extents...> gradient,
                                                           std::array<hlo::Traced<float, Extents...>, Slots>& slots) {
  using Array = hlo::Traced<float, Extents...>;
  Array updated = weights;
  optimizer.template with_update<Array>(1, [&](const auto update) {
    using Update = std::remove_const_t<decltype(update)>;
    if (Slots != Update::slots.size())
      throw InvalidArgument(
          text("A step of ", O::name, " cannot be traced"),
          text("it is given ", Slots, " slots, and has ", Update::slots.size(), " with these options"),
          "Give it an array for each of its slots");
    const auto step = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Update{Array{hlo::reshape<>(hlo::slice<0, I, 1>(numbers))}...};
    }
    (std::make_index_sequence<detail::numbers_of<Update, Array>>{});
    updated = step(weights, gradient, slots.data());
  });
  return updated;
}

}  // namespace dist::nn
