#pragma once

#include <type_traits>
#include <utility>

#include <dist/hlo/traced.hpp>

namespace dist::hlo {

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
