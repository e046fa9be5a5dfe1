/// Operations on values whose types are known while tracing, the basis of traced arrays. Each records its gradient.
/// The caller must ensure that shapes match: functions on traced arrays check them at compile time, and XLA rejects a
/// mismatch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/hlo/trace.hpp>

namespace dist::hlo::untyped {

using Axes = std::vector<std::size_t>;

[[nodiscard]] const Type& type_of(Value x);
/// 0, 1, ..., rank - 1
[[nodiscard]] Axes axes_in_order(std::size_t rank);
[[nodiscard]] Shape with_extent(const Shape& shape, std::size_t axis, std::size_t extent);
[[nodiscard]] Axes extents_of(const Shape& shape);

/// Returns attributes: `name = array<i64: 0, 2>` and `name = 1 : i64`.
[[nodiscard]] std::string list(std::string_view name, std::span<const std::size_t> numbers);
[[nodiscard]] std::string number(std::string_view name, std::size_t number);

/// All elements are `number`; for `literal` see hlo::literal.
[[nodiscard]] Value constant(const Type& type, const std::string& literal);
[[nodiscard]] Value constant(const Type& type, double number);
/// `number` in the type of `x`.
[[nodiscard]] Value constant_like(Value x, double number);

[[nodiscard]] Value add(Value a, Value b);
[[nodiscard]] Value subtract(Value a, Value b);
[[nodiscard]] Value multiply(Value a, Value b);
[[nodiscard]] Value divide(Value a, Value b);
/// The remainder, with the sign of `a`.
[[nodiscard]] Value remainder(Value a, Value b);
[[nodiscard]] Value power(Value a, Value b);
/// For equal elements, both gradients pass to `a`.
[[nodiscard]] Value maximum(Value a, Value b);
[[nodiscard]] Value minimum(Value a, Value b);
/// `operation` is "and", "or", "xor", "shift_left", "shift_right_arithmetic" or "shift_right_logical".
[[nodiscard]] Value bitwise(std::string_view operation, Value a, Value b);

[[nodiscard]] Value negate(Value x);
[[nodiscard]] Value abs(Value x);
[[nodiscard]] Value sign(Value x);
[[nodiscard]] Value floor(Value x);
[[nodiscard]] Value exp(Value x);
[[nodiscard]] Value expm1(Value x);
[[nodiscard]] Value log(Value x);
[[nodiscard]] Value log1p(Value x);
[[nodiscard]] Value sqrt(Value x);
[[nodiscard]] Value rsqrt(Value x);
[[nodiscard]] Value sin(Value x);
[[nodiscard]] Value cos(Value x);
[[nodiscard]] Value tanh(Value x);
[[nodiscard]] Value logistic(Value x);
[[nodiscard]] Value erf(Value x);
[[nodiscard]] Value logical_not(Value x);

/// `direction` is "EQ", "NE", "LT", "LE", "GT" or "GE".
[[nodiscard]] Value compare(std::string_view direction, Value a, Value b);
[[nodiscard]] Value select(Value condition, Value a, Value b);
[[nodiscard]] Value convert(Value x, ElementKind kind);
/// Rounds each element to the nearest value of `half`, f16 or bf16, in the type of `x`. The gradient passes
/// unchanged.
[[nodiscard]] Value rounded(Value x, ElementKind half);
/// Returns `x` without a gradient.
[[nodiscard]] Value stop_gradient(Value x);

/// Axis i of `x` becomes axis `axes[i]` of the result.
[[nodiscard]] Value broadcast(Value x, const Shape& shape, const Axes& axes);
[[nodiscard]] Value reshape(Value x, const Shape& shape);
/// Axis i of the result is axis `axes[i]` of `x`.
[[nodiscard]] Value transpose(Value x, const Axes& axes);

/// Batch axes and summed axes, in the same order for both operands.
struct Contraction {
  Axes batch_of_a, batch_of_b;
  Axes summed_of_a, summed_of_b;
};
/// The result has the batch axes, then the other axes of `a`, then of `b`.
[[nodiscard]] Value contract(Value a, Value b, const Contraction& axes);

/// `reduction` is "add", "multiply", "minimum" or "maximum".
[[nodiscard]] Region reducer(std::string_view reduction, ElementKind kind);
/// Reduces `axes`, from `start`. Equal extrema share the gradient equally.
[[nodiscard]] Value reduce(std::string_view reduction, Value x, const std::string& start, const Axes& axes);
/// Each element is its index along `axis`.
[[nodiscard]] Value iota(const Type& type, std::size_t axis);

/// Every `stride`-th element of each axis, from `first` to before `limit`.
[[nodiscard]] Value slice(Value x, const Axes& first, const Axes& limit, const Axes& stride);
/// The elements along one axis from `first` to before `limit`.
[[nodiscard]] Value slice_along(Value x, std::size_t axis, std::size_t first, std::size_t limit);
/// Pads each axis with `padding` at its start, at its end, and between its elements.
[[nodiscard]] Value pad(Value x, Value padding, const Axes& before, const Axes& behind, const Axes& between);
/// Reverses these axes.
[[nodiscard]] Value reverse(Value x, const Axes& axes);
[[nodiscard]] Value concatenate(const std::vector<Value>& parts, std::size_t axis);

}  // namespace dist::hlo::untyped

#ifndef DIST_COMPILED
#include <dist/hlo/untyped.ipp>
#endif
