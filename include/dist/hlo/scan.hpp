#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include <dist/hlo/indexing.hpp>
#include <dist/hlo/loop.hpp>

namespace dist::hlo {

namespace detail {

/// Whether all arrays have a first axis, with the same extent.
template <TracedArray First, TracedArray... More>
[[nodiscard]] constexpr bool share_first_extent() {
  if constexpr (First::rank == 0 || ((More::rank == 0) || ...))
    return false;
  else
    return ((More::extents[0] == First::extents[0]) && ...);
}

/// The array at `index` along the first axis.
template <class T, std::size_t Count, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> element(Traced<T, Count, Extents...> arrays, Traced<std::int32_t> index) {
  return reshape<Extents...>(dynamic_slice<0, 1>(arrays, index));
}

}  // namespace detail

/// A loop over the first axis of arrays, which have one extent there: `body(elements..., state...)`, with the element of each
/// array, returns the state of the next pass, a std::tuple of the same types. Returns the state at the end.
///
///     // The sum of the gradients of four smaller batches.
///     const auto [sum] = hlo::scan([&](auto images, auto targets, auto so_far) {
///       return std::tuple{so_far + gradient(images, targets)};
///     }, std::tuple{four_images, four_targets}, Weights{0});
template <class Body, TracedArray First, TracedArray... More, TracedArray... State>
[[nodiscard]] std::tuple<State...> scan(Body&& body, const std::tuple<First, More...>& arrays, State... initial) {
  static_assert(detail::share_first_extent<First, More...>(),
                "hlo::scan goes over arrays with the same extent along their first axis");
  static_assert(First::extents[0] != batch, "hlo::scan cannot go over an axis that is hlo::batch");
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
