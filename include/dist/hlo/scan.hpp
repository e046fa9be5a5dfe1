#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>

#include <dist/hlo/indexing.hpp>
#include <dist/hlo/traced.hpp>

namespace dist::hlo {

namespace untyped {

/// A function of a loop's state.
using StateFunction = std::function<std::vector<Value>(const std::vector<Value>&)>;
/// `condition` returns one value, `body` the next state.
[[nodiscard]] std::vector<Value> loop(const StateFunction& condition, const StateFunction& body,
                                      const std::vector<Value>& initial);

}  // namespace untyped

/// Runs a loop in the program while `condition(state...)` is true. `body(state...)` returns the next state, a
/// std::tuple of the same types. Returns the final state. Both functions are traced once; other values that they use
/// are constant in the loop.
template <class Condition, class Body, TracedArray... State>
[[nodiscard]] std::tuple<State...> loop(Condition&& condition, Body&& body, State... initial) {
  static_assert(std::same_as<std::invoke_result_t<Condition, State...>, Traced<bool>>,
                "the condition of hlo::loop must return an hlo::Traced<bool>");
  static_assert(std::same_as<std::invoke_result_t<Body, State...>, std::tuple<State...>>,
                "the body of hlo::loop must return a std::tuple of the types of its arguments");
  using All = std::tuple<State...>;
  return detail::arrays_of<All>(untyped::loop(
      [&](const std::vector<Value>& state) {
        return std::vector<Value>{Traced<bool>{std::apply(condition, detail::arrays_of<All>(state))}.value()};
      },
      [&](const std::vector<Value>& state) {
        return detail::values_of(All{std::apply(body, detail::arrays_of<All>(state))});
      },
      {initial.value()...}));
}

namespace detail {

/// True if the arrays have a first axis of the same extent.
template <TracedArray First, TracedArray... More>
[[nodiscard]] constexpr bool share_first_extent() {
  if constexpr (First::rank == 0 || ((More::rank == 0) || ...))
    return false;
  else
    return ((More::extents[0] == First::extents[0]) && ...);
}

/// The element at `index` along the first axis.
template <class T, std::size_t Count, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> element(Traced<T, Count, Extents...> arrays, Traced<std::int32_t> index) {
  return reshape<Extents...>(dynamic_slice<0, 1>(arrays, index));
}

}  // namespace detail

/// Runs a loop over the first axis of arrays of equal length. `body(elements..., state...)` returns the next state, a
/// std::tuple of the same types. Returns the final state.
///
///     // The sum of the gradients of four smaller batches.
///     const auto [sum] = hlo::scan([&](auto images, auto targets, auto so_far) {
///       return std::tuple{so_far + gradient(images, targets)};
///     }, std::tuple{four_images, four_targets}, Weights{0});
template <class Body, TracedArray First, TracedArray... More, TracedArray... State>
[[nodiscard]] std::tuple<State...> scan(Body&& body, const std::tuple<First, More...>& arrays, State... initial) {
  static_assert(detail::share_first_extent<First, More...>(),
                "hlo::scan needs arrays with the same extent along their first axis");
  static_assert(First::extents[0] != batch, "hlo::scan cannot iterate over an axis that is hlo::batch");
  const auto pass = [&](Traced<std::int32_t> index, State... state) {
    const auto next = std::apply(
        [&](auto... each) { return std::tuple<State...>{body(detail::element(each, index)..., state...)}; }, arrays);
    return std::tuple_cat(std::tuple{index + 1}, next);
  };
  const auto goes_on = [](Traced<std::int32_t> index, State...) {
    return index < static_cast<std::int32_t>(First::extents[0]);
  };
  return std::apply([](auto, State... state) { return std::tuple<State...>{state...}; },
                    loop(goes_on, pass, Traced<std::int32_t>{0}, initial...));
}

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/scan.ipp>
#endif
