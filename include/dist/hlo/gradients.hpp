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

/// The gradients of `of`, one floating-point number, by each of the values `by`.
[[nodiscard]] std::vector<Value> gradients(Value of, std::span<const Value> by);

}  // namespace untyped

/// The derivatives of a number by the elements of arrays from which the program has computed it, as arrays of the same
/// shapes: zero where it does not depend on them. Reverse-mode differentiation of the operations that were recorded so far,
/// collectives among them; under these, of the sum of what all replicas compute. Throws InvalidArgument, which names it, for
/// an operation on the way whose gradient is not known, such as a loop.
///
///     const auto [of_weights, of_bias] = hlo::gradients(loss, std::tuple{weights, bias});
template <class T, TracedArray... By>
[[nodiscard]] std::tuple<By...> gradients(Traced<T> of, const std::tuple<By...>& by) {
  static_assert(Floating<T> && (Floating<typename By::Element> && ...),
                "hlo::gradients differentiates a floating-point number by arrays of such numbers");
  return detail::arrays_of<std::tuple<By...>>(untyped::gradients(of.value(), detail::values_of(by)));
}

/// `x`, as a constant to hlo::gradients.
template <TracedArray X>
[[nodiscard]] X stop_gradient(X x) {
  return X{untyped::stop_gradient(x.value())};
}

/// `y`, a function of each element of `x`, with a gradient of its own instead of that of the operations which computed it:
/// `pullback(gradient)` is the gradient of `x`, from that of `y`. For functions whose slope is not that of their operations, as
/// where they have a kink.
///
///     const auto y = hlo::with_gradient(hlo::max(x, 0), x, [=](auto of_y) { return hlo::select(x > 0, of_y, 0); });
template <TracedArray X, class Pullback>
[[nodiscard]] X with_gradient(X y, std::type_identity_t<X> x, Pullback pullback) {
  // A choice of y, which XLA removes: it only says that y depends on x.
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
