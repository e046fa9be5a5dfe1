#pragma once

#include <algorithm>
#include <numeric>
#include <utility>

#include <dist/core/text.hpp>
#include <dist/hlo/untyped.hpp>

namespace dist::hlo::untyped {

namespace detail {

/// No gradient passes to this operand.
inline constexpr std::nullptr_t none = nullptr;
/// Returns the gradient unchanged.
[[nodiscard]] DIST_INLINE Value passed(Value, Value gradient) { return gradient; }

[[nodiscard]] DIST_INLINE Value record(std::string_view name, std::vector<Value> operands, std::string attributes,
                                       const Type& type, std::vector<Pullback> pullbacks) {
  return Trace::current().add({name, std::move(operands), std::move(attributes), std::move(pullbacks)}, type);
}
/// Records an elementwise operation.
[[nodiscard]] DIST_INLINE Value elementwise(std::string_view name, std::vector<Value> operands,
                                            std::vector<Pullback> pullbacks) {
  const Type type = type_of(operands.front());
  return record(name, std::move(operands), "", type, std::move(pullbacks));
}

[[nodiscard]] DIST_INLINE Value scaled(Value x, double factor) { return multiply(x, constant_like(x, factor)); }

/// The axes in neither list, in order.
[[nodiscard]] DIST_INLINE Axes other_axes(std::size_t rank, const Axes& some, const Axes& more = {}) {
  Axes others;
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (std::find(some.begin(), some.end(), axis) == some.end() &&
        std::find(more.begin(), more.end(), axis) == more.end())
      others.push_back(axis);
  return others;
}
[[nodiscard]] DIST_INLINE Axes joined(Axes first, const Axes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}
/// The inverse permutation.
[[nodiscard]] DIST_INLINE Axes inverse(const Axes& axes) {
  Axes inverse(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) inverse[axes[i]] = i;
  return inverse;
}

[[nodiscard]] DIST_INLINE Axes extents_at(const Shape& shape, const Axes& axes) {
  Axes extents;
  for (const std::size_t axis : axes) extents.push_back(shape[axis]);
  return extents;
}

/// `a` if `condition` is true, otherwise 0.
[[nodiscard]] DIST_INLINE Value where(Value condition, Value a) { return select(condition, a, constant_like(a, 0)); }

/// The gradient of a broadcast operand: the sum over all other axes.
[[nodiscard]] DIST_INLINE Value summed_to(Value gradient, const Axes& axes) {
  Axes sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  const Type& type = type_of(gradient);
  const Value sums = reduce("add", gradient, literal(0, type.element), other_axes(type.shape.rank(), axes));
  Axes order;
  for (const std::size_t axis : axes)
    order.push_back(static_cast<std::size_t>(std::find(sorted.begin(), sorted.end(), axis) - sorted.begin()));
  return transpose(sums, order);
}

}  // namespace detail

DIST_INLINE const Type& type_of(Value x) { return Trace::current().type(x); }

DIST_INLINE Axes axes_in_order(std::size_t rank) {
  Axes axes(rank);
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  return axes;
}
DIST_INLINE Shape with_extent(const Shape& shape, std::size_t axis, std::size_t extent) {
  Axes extents = extents_of(shape);
  extents[axis] = extent;
  return Shape{extents};
}
DIST_INLINE Axes extents_of(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

DIST_INLINE std::string list(std::string_view name, std::span<const std::size_t> numbers) {
  return concat(name, " = array<i64", numbers.empty() ? "" : ": ", dist::joined(numbers), ">");
}
DIST_INLINE std::string number(std::string_view name, std::size_t number) {
  return concat(name, " = ", number, " : i64");
}

DIST_INLINE Value constant(const Type& type, const std::string& literal) {
  return detail::record("constant", {}, concat("value = dense<", literal, "> : ", type), type, {});
}
DIST_INLINE Value constant(const Type& type, double number) { return constant(type, literal(number, type.element)); }
DIST_INLINE Value constant_like(Value x, double number) { return constant(type_of(x), number); }

DIST_INLINE Value add(Value a, Value b) { return detail::elementwise("add", {a, b}, {detail::passed, detail::passed}); }
DIST_INLINE Value subtract(Value a, Value b) {
  return detail::elementwise("subtract", {a, b}, {detail::passed, [](Value, Value g) { return negate(g); }});
}
DIST_INLINE Value multiply(Value a, Value b) {
  return detail::elementwise(
      "multiply", {a, b},
      {[b](Value, Value g) { return multiply(g, b); }, [a](Value, Value g) { return multiply(g, a); }});
}
DIST_INLINE Value divide(Value a, Value b) {
  return detail::elementwise("divide", {a, b},
                             {[b](Value, Value g) { return divide(g, b); },
                              [b](Value y, Value g) { return negate(divide(multiply(g, y), b)); }});
}
DIST_INLINE Value remainder(Value a, Value b) {
  // a - b trunc(a / b); the gradient treats the truncated quotient as constant.
  return detail::elementwise("remainder", {a, b}, {detail::passed, [a, b](Value y, Value g) {
                                                     return negate(multiply(g, divide(subtract(a, y), b)));
                                                   }});
}
DIST_INLINE Value power(Value a, Value b) {
  const auto of_base = [a, b](Value, Value g) {
    const Value zero = constant_like(b, 0);
    const Value slope = multiply(b, power(a, subtract(b, constant_like(b, 1))));
    return multiply(g, select(compare("EQ", b, zero), zero, slope));  // avoids 0 * infinity
  };
  const auto of_exponent = [a](Value y, Value g) {
    return multiply(g, multiply(y, detail::where(compare("GT", a, constant_like(a, 0)), log(a))));
  };
  return detail::elementwise("power", {a, b}, {of_base, of_exponent});
}

namespace detail {

[[nodiscard]] DIST_INLINE Value extremum(std::string_view name, std::string_view is_first, Value a, Value b) {
  const auto of_first = [a, b, is_first](Value, Value g) { return where(compare(is_first, a, b), g); };
  const auto of_second = [a, b, is_first](Value, Value g) {
    return select(compare(is_first, a, b), constant_like(g, 0), g);
  };
  return elementwise(name, {a, b}, {of_first, of_second});
}

}  // namespace detail

DIST_INLINE Value maximum(Value a, Value b) { return detail::extremum("maximum", "GE", a, b); }
DIST_INLINE Value minimum(Value a, Value b) { return detail::extremum("minimum", "LE", a, b); }
DIST_INLINE Value bitwise(std::string_view operation, Value a, Value b) {
  return detail::elementwise(operation, {a, b}, {});
}

DIST_INLINE Value negate(Value x) {
  return detail::elementwise("negate", {x}, {[](Value, Value g) { return negate(g); }});
}
DIST_INLINE Value abs(Value x) {
  return detail::elementwise("abs", {x}, {[x](Value, Value g) { return multiply(g, sign(x)); }});
}
DIST_INLINE Value sign(Value x) { return detail::elementwise("sign", {x}, {detail::none}); }
DIST_INLINE Value floor(Value x) { return detail::elementwise("floor", {x}, {detail::none}); }
DIST_INLINE Value exp(Value x) {
  return detail::elementwise("exponential", {x}, {[](Value y, Value g) { return multiply(g, y); }});
}
DIST_INLINE Value expm1(Value x) {
  return detail::elementwise("exponential_minus_one", {x},
                             {[](Value y, Value g) { return multiply(g, add(y, constant_like(y, 1))); }});
}
DIST_INLINE Value log(Value x) {
  return detail::elementwise("log", {x}, {[x](Value, Value g) { return divide(g, x); }});
}
DIST_INLINE Value log1p(Value x) {
  return detail::elementwise("log_plus_one", {x},
                             {[x](Value, Value g) { return divide(g, add(x, constant_like(x, 1))); }});
}
DIST_INLINE Value sqrt(Value x) {
  return detail::elementwise("sqrt", {x}, {[](Value y, Value g) { return divide(detail::scaled(g, 0.5), y); }});
}
DIST_INLINE Value rsqrt(Value x) {
  return detail::elementwise(
      "rsqrt", {x}, {[](Value y, Value g) { return multiply(detail::scaled(g, -0.5), multiply(y, multiply(y, y))); }});
}
DIST_INLINE Value sin(Value x) {
  return detail::elementwise("sine", {x}, {[x](Value, Value g) { return multiply(g, cos(x)); }});
}
DIST_INLINE Value cos(Value x) {
  return detail::elementwise("cosine", {x}, {[x](Value, Value g) { return negate(multiply(g, sin(x))); }});
}
DIST_INLINE Value tanh(Value x) {
  return detail::elementwise(
      "tanh", {x}, {[](Value y, Value g) { return multiply(g, subtract(constant_like(y, 1), multiply(y, y))); }});
}
DIST_INLINE Value logistic(Value x) {
  return detail::elementwise(
      "logistic", {x}, {[](Value y, Value g) { return multiply(g, multiply(y, subtract(constant_like(y, 1), y))); }});
}
DIST_INLINE Value erf(Value x) {
  // The derivative is 2 / sqrt(pi) exp(-x^2).
  return detail::elementwise("chlo.erf", {x}, {[x](Value, Value g) {
                               return multiply(g, detail::scaled(exp(negate(multiply(x, x))), 1.12837916709551257390));
                             }});
}
DIST_INLINE Value logical_not(Value x) { return detail::elementwise("not", {x}, {}); }

DIST_INLINE Value compare(std::string_view direction, Value a, Value b) {
  return detail::record("compare", {a, b},
                        concat("comparison_direction = #stablehlo<comparison_direction ", direction, ">"),
                        {ElementKind::i1, type_of(a).shape}, {detail::none, detail::none});
}
DIST_INLINE Value select(Value condition, Value a, Value b) {
  return detail::record("select", {condition, a, b}, "", type_of(a),
                        {detail::none, [condition](Value, Value g) { return detail::where(condition, g); },
                         [condition](Value, Value g) { return select(condition, constant_like(g, 0), g); }});
}
DIST_INLINE Value convert(Value x, ElementKind kind) {
  const Type from = type_of(x);
  std::vector<Pullback> pullbacks;  // none from integers, where a gradient would be lost silently
  if (is_floating(from.element) && is_floating(kind))
    pullbacks = {[kind = from.element](Value, Value g) { return convert(g, kind); }};
  else if (from.element == ElementKind::i1 || kind == ElementKind::i1)
    pullbacks = {detail::none};
  return detail::record("convert", {x}, "", {kind, from.shape}, std::move(pullbacks));
}
DIST_INLINE Value rounded(Value x, ElementKind half) {
  const bool is_f16 = half == ElementKind::f16;
  const Type type = type_of(x);
  // XLA may optimise away a conversion to a shorter type and back, but never this.
  const Value normal =
      detail::record("reduce_precision", {x},
                     concat("exponent_bits = ", is_f16 ? 5 : 8, " : i32, mantissa_bits = ", is_f16 ? 10 : 7, " : i32"),
                     type, {detail::passed});
  if (!is_f16) return normal;
  // reduce_precision flushes subnormal numbers to 0. For f16 these are the multiples of 2^-24 below 2^-14.
  const Value multiple = detail::elementwise("round_nearest_even", {detail::scaled(x, 0x1p24)}, {detail::none});
  const Value is_denormal = compare("LT", abs(x), constant_like(x, 0x1p-14));
  return detail::record("select", {is_denormal, detail::scaled(multiple, 0x1p-24), normal}, "", type,
                        {detail::none, detail::none, detail::passed});
}
DIST_INLINE Value stop_gradient(Value x) {
  const Type type = type_of(x);
  return detail::record("convert", {x}, "", type, {detail::none});
}

DIST_INLINE Value broadcast(Value x, const Shape& shape, const Axes& axes) {
  return detail::record("broadcast_in_dim", {x}, list("broadcast_dimensions", axes), {type_of(x).element, shape},
                        {[axes](Value, Value g) { return detail::summed_to(g, axes); }});
}
DIST_INLINE Value reshape(Value x, const Shape& shape) {
  const Type from = type_of(x);
  return detail::record("reshape", {x}, "", {from.element, shape},
                        {[shape = from.shape](Value, Value g) { return reshape(g, shape); }});
}
DIST_INLINE Value transpose(Value x, const Axes& axes) {
  if (axes == axes_in_order(axes.size())) return x;
  const Type from = type_of(x);
  return detail::record("transpose", {x}, list("permutation", axes),
                        {from.element, Shape{detail::extents_at(from.shape, axes)}},
                        {[axes](Value, Value g) { return transpose(g, detail::inverse(axes)); }});
}

DIST_INLINE Value contract(Value a, Value b, const Contraction& axes) {
  const Shape of_a = type_of(a).shape, of_b = type_of(b).shape;
  const Axes free_of_a = detail::other_axes(of_a.rank(), axes.batch_of_a, axes.summed_of_a);
  const Axes free_of_b = detail::other_axes(of_b.rank(), axes.batch_of_b, axes.summed_of_b);
  const Axes extents = detail::joined(detail::extents_at(of_a, detail::joined(axes.batch_of_a, free_of_a)),
                                      detail::extents_at(of_b, free_of_b));
  const std::size_t batches = axes.batch_of_a.size();
  const auto from = [](std::size_t first, std::size_t count) {
    Axes range = axes_in_order(count);
    for (std::size_t& axis : range) axis += first;
    return range;
  };
  const Axes batch_of_g = from(0, batches);
  const Axes a_of_g = from(batches, free_of_a.size());
  const Axes b_of_g = from(batches + free_of_a.size(), free_of_b.size());
  // The product of the gradient and one operand has the batch axes, the other operand's free axes, and the summed
  // axes in this operand's order. Each summed axis belongs where its partner is.
  const auto partners = [](const Axes& numbers, const Axes& of, const Axes& partner_of) {
    Axes found;
    for (const std::size_t number : numbers)
      found.push_back(partner_of[static_cast<std::size_t>(std::find(of.begin(), of.end(), number) - of.begin())]);
    return found;
  };
  const auto sorted = [](Axes numbers) {
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  };
  const auto of_first = [=](Value, Value g) {
    const Value product = contract(g, b, {batch_of_g, axes.batch_of_b, b_of_g, free_of_b});
    const Axes summed = partners(sorted(axes.summed_of_b), axes.summed_of_b, axes.summed_of_a);
    return transpose(product, detail::inverse(detail::joined(detail::joined(axes.batch_of_a, free_of_a), summed)));
  };
  const auto of_second = [=](Value, Value g) {
    const Value product = contract(g, a, {batch_of_g, axes.batch_of_a, a_of_g, free_of_a});
    const Axes summed = partners(sorted(axes.summed_of_a), axes.summed_of_a, axes.summed_of_b);
    return transpose(product, detail::inverse(detail::joined(detail::joined(axes.batch_of_b, free_of_b), summed)));
  };
  const auto written = [](std::string_view name, const Axes& numbers) {
    return concat(name, " = [", dist::joined(numbers), "]");
  };
  return detail::record(
      "dot_general", {a, b},
      concat("dot_dimension_numbers = #stablehlo.dot<", written("lhs_batching_dimensions", axes.batch_of_a), ", ",
             written("rhs_batching_dimensions", axes.batch_of_b), ", ",
             written("lhs_contracting_dimensions", axes.summed_of_a), ", ",
             written("rhs_contracting_dimensions", axes.summed_of_b), ">"),
      {type_of(a).element, Shape{extents}}, {of_first, of_second});
}

DIST_INLINE Region reducer(std::string_view reduction, ElementKind kind) {
  const Type number{kind, Shape{}};
  return Trace::current().region({number, number}, [&](const std::vector<Value>& two) {
    return std::vector<Value>{detail::elementwise(reduction, two, {})};
  });
}
DIST_INLINE Value reduce(std::string_view reduction, Value x, const std::string& start, const Axes& axes) {
  const Type from = type_of(x);
  const Axes kept = detail::other_axes(from.shape.rank(), axes);
  const auto repeated = [kept, shape = from.shape](Value y) { return broadcast(y, shape, kept); };
  Pullback pullback;
  if (reduction == "add") {
    pullback = [=](Value, Value g) { return repeated(g); };
  } else if (reduction == "multiply") {
    // The product of all other elements, also if some are 0.
    pullback = [=](Value, Value g) {
      const Value zero = constant_like(x, 0), unit = constant_like(x, 1);
      const Value is_zero = compare("EQ", x, zero);
      const Value zeros = repeated(reduce("add", select(is_zero, unit, zero), literal(0, from.element), axes));
      const Value product = repeated(reduce("multiply", select(is_zero, unit, x), start, axes));
      const Value others = select(is_zero, detail::where(compare("EQ", zeros, unit), product),
                                  detail::where(compare("EQ", zeros, zero), divide(product, x)));
      return multiply(repeated(g), others);
    };
  } else {
    pullback = [=](Value y, Value g) {
      const Value unit = constant_like(x, 1);
      const Value has_it = detail::where(compare("EQ", x, repeated(y)), unit);
      const Value count = reduce("add", has_it, literal(0, from.element), axes);
      return multiply(has_it, repeated(divide(g, count)));
    };
  }
  Operation operation{
      "reduce", {x, constant({from.element, Shape{}}, start)}, list("dimensions", axes), {pullback, detail::none}};
  operation.regions.push_back(reducer(reduction, from.element));
  return Trace::current().add(std::move(operation), {from.element, Shape{detail::extents_at(from.shape, kept)}});
}
DIST_INLINE Value iota(const Type& type, std::size_t axis) {
  return detail::record("iota", {}, number("iota_dimension", axis), type, {});
}

DIST_INLINE Value slice(Value x, const Axes& first, const Axes& limit, const Axes& stride) {
  const Type from = type_of(x);
  Axes extents, behind, between;
  for (std::size_t axis = 0; axis < first.size(); ++axis) {
    extents.push_back((limit[axis] - first[axis] + stride[axis] - 1) / stride[axis]);
    between.push_back(stride[axis] - 1);
    behind.push_back(from.shape[axis] - first[axis] -
                     (extents[axis] == 0 ? 0 : (extents[axis] - 1) * stride[axis] + 1));
  }
  return detail::record(
      "slice", {x},
      concat(list("start_indices", first), ", ", list("limit_indices", limit), ", ", list("strides", stride)),
      {from.element, Shape{extents}}, {[=](Value, Value g) {
        return pad(g, constant({from.element, Shape{}}, 0), first, behind, between);
      }});
}
DIST_INLINE Value slice_along(Value x, std::size_t axis, std::size_t first, std::size_t limit) {
  Axes limits = extents_of(type_of(x).shape);
  Axes starts(limits.size(), 0), strides(limits.size(), 1);
  starts[axis] = first;
  limits[axis] = limit;
  return slice(x, starts, limits, strides);
}
DIST_INLINE Value pad(Value x, Value padding, const Axes& before, const Axes& behind, const Axes& between) {
  const Type from = type_of(x);
  Axes extents, limits, strides;
  for (std::size_t axis = 0; axis < before.size(); ++axis) {
    const std::size_t extent = from.shape[axis];
    const std::size_t spread = extent == 0 ? 0 : extent + (extent - 1) * between[axis];
    extents.push_back(before[axis] + spread + behind[axis]);
    limits.push_back(before[axis] + spread);
    strides.push_back(between[axis] + 1);
  }
  const auto of_elements = [=](Value, Value g) { return slice(g, before, limits, strides); };
  const auto of_padding = [=](Value y, Value g) {
    const std::string zero = literal(0, from.element);
    const Axes all = axes_in_order(before.size());
    return subtract(reduce("add", g, zero, all), reduce("add", of_elements(y, g), zero, all));
  };
  return detail::record("pad", {x, padding},
                        concat(list("edge_padding_low", before), ", ", list("edge_padding_high", behind), ", ",
                               list("interior_padding", between)),
                        {from.element, Shape{extents}}, {of_elements, of_padding});
}
DIST_INLINE Value reverse(Value x, const Axes& axes) {
  const Type type = type_of(x);
  return detail::record("reverse", {x}, list("dimensions", axes), type,
                        {[axes](Value, Value g) { return reverse(g, axes); }});
}
DIST_INLINE Value concatenate(const std::vector<Value>& parts, std::size_t axis) {
  const Type first = type_of(parts.front());
  std::size_t extent = 0;
  std::vector<Pullback> pullbacks;
  for (const Value part : parts) {
    const std::size_t begin = extent;
    const std::size_t end = extent += type_of(part).shape[axis];
    pullbacks.push_back([=](Value, Value g) { return slice_along(g, axis, begin, end); });
  }
  return detail::record("concatenate", parts, number("dimension", axis),
                        {first.element, with_extent(first.shape, axis, extent)}, std::move(pullbacks));
}

}  // namespace dist::hlo::untyped
