#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

namespace dist::nn {

namespace detail {

struct IgnoreUpdate {
  template <class Update>
  void operator()(Update) const {}
};

}  // namespace detail

/// The arithmetic of an optimizer: a struct of hyper-parameters, with `check()` for their ranges, whose
/// `with_update<T>(iteration, apply)` calls `apply(update)` with the functor of this step.
///
/// The functor is trivially copyable; `update(weight, gradient, slots)` returns the new weight and changes
/// the element's slots, all in registers, so that a CPU loop, a ring's pass and a kernel can inline the same
/// one. `Update::slots` names the slots, and so says how many there are.
template <class O>
concept OptimizerFunction = std::copyable<O> &&
    requires(O optimizer, std::int64_t iteration, detail::IgnoreUpdate apply) {
  { O::name } -> std::convertible_to<std::string_view>;
  { optimizer.learning_rate } -> std::same_as<float&>;
  optimizer.check();
  optimizer.template with_update<float>(iteration, apply);
};

namespace detail {

/// The names of the slots that the optimizer has beside elements of type T.
template <class T, OptimizerFunction O>
[[nodiscard]] std::span<const std::string_view> slot_names(const O& function) {
  std::span<const std::string_view> names;
  function.template with_update<T>(1, [&](const auto update) { names = decltype(update)::slots; });
  return names;
}

}  // namespace detail

/// An optimizer whose step in each parameter is scaled by norms, such as Lamb: `scales_by_norms` is true. Its functor is
/// called in two passes over the elements. `update.direction(gradient, slots)` changes the element's slots and returns where
/// to; the direction of each parameter is then multiplied by the trust ratio, the norm of the weights over that of the
/// direction, or 1 where one of them is 0; `update(weight, direction, slots)` goes there.
template <class O>
concept ScalesByNorms = O::scales_by_norms;

}  // namespace dist::nn
