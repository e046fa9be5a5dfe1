#pragma once

#include <span>
#include <tuple>
#include <vector>

#include <dist/core/dtype.hpp>
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

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/gradients.ipp>
#endif
