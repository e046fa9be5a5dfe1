#pragma once

#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/memory_space.hpp>
#include <dist/hlo/traced.hpp>
#include <dist/hlo/untyped.hpp>

namespace dist::hlo {

namespace untyped {

/// The gradients of the floating-point number `of` with respect to the values `by`.
[[nodiscard]] std::vector<Value> gradients(Value of, std::span<const Value> by);

}  // namespace untyped

/// Returns the derivatives of a number with respect to arrays, in the same shapes, by reverse-mode differentiation of
/// the operations recorded before the call; zero for arrays on which the number does not depend. Through collectives,
/// it differentiates the sum over all replicas. Throws InvalidArgument, naming the operation, if an operation in
/// between has no gradient, such as a loop.
///
///     const auto [of_weights, of_bias] = hlo::gradients(loss, std::tuple{weights, bias});
template <class T, TracedArray... By>
[[nodiscard]] std::tuple<By...> gradients(Traced<T> of, const std::tuple<By...>& by) {
  static_assert(
      Floating<T> && (Floating<typename By::Element> && ...),
      "hlo::gradients differentiates a floating-point number with respect to arrays of floating-point numbers");
  return detail::arrays_of<std::tuple<By...>>(untyped::gradients(of.value(), detail::values_of(by)));
}

/// Returns `x` as a constant for hlo::gradients.
template <TracedArray X>
[[nodiscard]] X stop_gradient(X x) {
  return X{untyped::stop_gradient(x.value())};
}

/// Returns `y`, an elementwise function of `x`, with an explicit gradient: `pullback(gradient)` returns the gradient
/// of `x` for a gradient of `y`. Useful for functions with a kink.
///
///     const auto y = hlo::with_gradient(hlo::max(x, 0), x, [=](auto of_y) { return hlo::select(x > 0, of_y, 0); });
template <TracedArray X, class Pullback>
[[nodiscard]] X with_gradient(X y, std::type_identity_t<X> x, Pullback pullback) {
  // A select that always returns y, which XLA removes; it records the dependence on x.
  return X{Trace::current().add({.name = "select",
                                 .operands = {Traced<bool>{true}.value(), y.value(), x.value()},
                                 .attributes = {},
                                 .pullbacks = {nullptr, nullptr,
                                               [pullback = std::move(pullback)](Value, Value gradient) {
                                                 return X{pullback(X{gradient})}.value();
                                               }}},
                                X::type())};
}

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/gradients.ipp>
#endif
