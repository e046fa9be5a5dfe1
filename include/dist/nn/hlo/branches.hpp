/// Layers that bring branches together, in programs for XLA.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include <dist/hlo/operations.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/concatenate.hpp>

namespace dist::nn {

namespace detail {

/// What each branch of a layer computes from `x`, as a std::tuple.
template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
[[nodiscard]] auto branch_outputs(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
  const auto output = [&]<std::size_t Branch>() {
    using Net = typename Bound::template Net<Branch>;
    auto of_branch = tied<Bound::template first_state<Branch>, Net::state.size()>(state);
    return emit_forward<Net>(
        arguments, copied<Bound::template first_parameter<Branch>, Net::parameters.size()>(parameters), of_branch, x);
  };
  return [&]<std::size_t... Branch>(std::index_sequence<Branch...>) {
    return std::tuple{output.template operator()<Branch>()...};
  }
  (std::make_index_sequence<Bound::count>{});
}

/// Side by side along the last axis.
template <hlo::TracedArray First, hlo::TracedArray... Rest>
[[nodiscard]] auto side_by_side(First first, Rest... rest) {
  if constexpr (sizeof...(Rest) == 0) {
    return first;
  } else {
    return hlo::concatenate<First::rank - 1>(first, side_by_side(rest...));
  }
}

}  // namespace detail

template <class... Branch>
struct Lowering<Add<Branch...>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
    return std::apply([](auto... outputs) { return (outputs + ...); },
                      detail::branch_outputs<Bound>(arguments, x, parameters, state));
  }
};

template <class... Branch>
struct Lowering<Concatenate<Branch...>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State& state) {
    return std::apply([](auto... outputs) { return detail::side_by_side(outputs...); },
                      detail::branch_outputs<Bound>(arguments, x, parameters, state));
  }
};

}  // namespace dist::nn
