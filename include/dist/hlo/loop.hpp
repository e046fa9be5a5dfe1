#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/hlo/traced.hpp>

namespace dist::hlo {

/// A loop of the program, for as long as `condition(state...)` holds: `body(state...)` returns the state of the next pass,
/// a std::tuple of the same types. Returns the state at the end. Both functions are called once, to be traced; what they
/// use besides is what it was before the loop.
template <class Condition, class Body, TracedArray... State>
[[nodiscard]] std::tuple<State...> loop(Condition&& condition, Body&& body, State... initial) {
  static_assert(std::same_as<std::invoke_result_t<Condition, State...>, Traced<bool>>,
                "the condition of hlo::loop returns a hlo::Traced<bool>");
  static_assert(std::same_as<std::invoke_result_t<Body, State...>, std::tuple<State...>>,
                "the body of hlo::loop returns a std::tuple of what it is given");
  Trace& trace = Trace::current();
  const std::tuple<State...> state{State{trace.argument()}...};
  const std::string check = trace.region([&] {
    const Traced<bool> goes_on = std::apply(condition, state);
    trace.add_line(dist::text("stablehlo.return ", goes_on.name(), " : ", goes_on.type()));
  });
  const std::string pass = trace.region([&] {
    const detail::Listed next = detail::listed(std::tuple<State...>{std::apply(body, state)});
    trace.add_line(dist::text("stablehlo.return ", next.names, " : ", next.types));
  });
  std::string starts;
  std::apply(
      [&](const State&... each) {
        ((starts += dist::text(starts.empty() ? "" : ", ", each.name(), " = ", initial.name())), ...);
      },
      state);
  const Value results = trace.argument();
  trace.add_line(dist::text(trace.name(results), ":", sizeof...(State), " = stablehlo.while(", starts,
                            ") : ", detail::listed(state).types, "\ncond {\n", check, "} do {\n", pass, "}"));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<State...>{State{Value{results.trace, results.number, I}}...};
  }
  (std::index_sequence_for<State...>{});
}

}  // namespace dist::hlo
