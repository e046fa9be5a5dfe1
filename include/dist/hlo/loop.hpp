#pragma once

#include <concepts>
#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>

#include <dist/hlo/traced.hpp>

namespace dist::hlo {

namespace untyped {

/// What a loop does with its state.
using StateFunction = std::function<std::vector<Value>(const std::vector<Value>&)>;
/// `condition` returns one value, and `body` the state of the next pass.
[[nodiscard]] std::vector<Value> loop(const StateFunction& condition, const StateFunction& body,
                                      const std::vector<Value>& initial);

}  // namespace untyped

/// A loop of the program, for as long as `condition(state...)` holds: `body(state...)` returns the state of the next pass,
/// a std::tuple of the same types. Returns the state at the end. Both functions are called once, to be traced; what they
/// use besides is what it was before the loop.
template <class Condition, class Body, TracedArray... State>
[[nodiscard]] std::tuple<State...> loop(Condition&& condition, Body&& body, State... initial) {
  static_assert(std::same_as<std::invoke_result_t<Condition, State...>, Traced<bool>>,
                "the condition of hlo::loop returns a hlo::Traced<bool>");
  static_assert(std::same_as<std::invoke_result_t<Body, State...>, std::tuple<State...>>,
                "the body of hlo::loop returns a std::tuple of what it is given");
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

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/loop.ipp>
#endif
