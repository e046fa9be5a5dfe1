#pragma once

#include <algorithm>
#include <optional>

#include <dist/core/text.hpp>
#include <dist/hlo/windows.hpp>

namespace dist::hlo::untyped {

DIST_INLINE WindowAxis WindowAxis::back(std::size_t extent) const noexcept {
  return {.size = size,
          .stride = dilation,
          .before = detail::spread(size, window_dilation) - 1 - before,
          .behind = detail::spread(extent, dilation) + before - detail::spread(outputs(extent), stride),
          .dilation = stride,
          .window_dilation = window_dilation};
}

DIST_INLINE WindowAxis WindowAxis::of_kernels(std::size_t extent) const noexcept {
  const std::size_t count = outputs(extent);
  return {.size = count,
          .stride = window_dilation,
          .before = before,
          .behind = detail::spread(size, window_dilation) - 1 + detail::spread(count, stride) -
                    detail::spread(extent, dilation) - before,
          .dilation = dilation,
          .window_dilation = stride};
}

DIST_INLINE std::string padding(const WindowAxes& windows) {
  const auto pair = [](const WindowAxis& axis) { return concat("[", axis.before, ", ", axis.behind, "]"); };
  return concat("padding = dense<[", dist::joined(windows, ", ", pair), "]> : tensor<", windows.size(), "x2xi64>");
}
DIST_INLINE std::string list(std::string_view name, const WindowAxes& windows, std::size_t WindowAxis::*number) {
  Axes numbers;
  for (const WindowAxis& axis : windows) numbers.push_back(axis.*number);
  return list(name, numbers);
}

namespace detail {

[[nodiscard]] DIST_INLINE WindowAxes back(const WindowAxes& windows, const Shape& shape) {
  WindowAxes all;
  for (std::size_t axis = 0; axis < windows.size(); ++axis) all.push_back(windows[axis].back(shape[axis]));
  return all;
}

/// True without dilation and negative padding.
[[nodiscard]] DIST_INLINE bool are_plain(const WindowAxes& windows) {
  return std::all_of(windows.begin(), windows.end(), [](const WindowAxis& axis) {
    return axis.dilation == 1 && axis.window_dilation == 1 && axis.before >= 0 && axis.behind >= 0;
  });
}

/// The gradient of window maxima for the first maximum, or the first NaN, of each window. Each step combines the same
/// position of all windows. XLA's select_and_scatter does not choose the first of equal maxima on CPUs, and takes 3.6
/// times as long for windows of 2 x 2 (27 November 2026).
[[nodiscard]] DIST_INLINE Value to_first_maxima(Value x, Value maxima, Value gradient, const std::string& start,
                                                const WindowAxes& windows) {
  const Type from = type_of(x);
  const Type outputs = type_of(gradient);
  const std::size_t rank = windows.size();
  Axes before, behind, stride, between, end, limit;
  const Axes origin(rank, 0), steps(rank, 1);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    before.push_back(static_cast<std::size_t>(windows[axis].before));
    behind.push_back(static_cast<std::size_t>(windows[axis].behind));
    stride.push_back(windows[axis].stride);
    between.push_back(windows[axis].stride - 1);
    end.push_back(before[axis] + from.shape[axis]);
    limit.push_back((outputs.shape[axis] - 1) * windows[axis].stride + 1);
  }
  const Value zero = constant({from.element, Shape{}}, 0), zeros = constant(outputs, 0);
  const Value all = pad(x, constant({from.element, Shape{}}, start), before, behind, origin);
  const Shape padded = type_of(all).shape;
  std::optional<Value> found, sum;
  for (Axes place = origin;;) {
    Axes last(rank), rest(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      last[axis] = place[axis] + limit[axis];
      rest[axis] = padded[axis] - last[axis];
    }
    const Value here = slice(all, place, last, stride);
    const Value is_maximum = bitwise("or", compare("EQ", here, maxima), compare("NE", here, here));
    const Value is_first = found ? bitwise("and", is_maximum, logical_not(*found)) : is_maximum;
    found = found ? bitwise("or", *found, is_maximum) : is_maximum;
    const Value part = pad(select(is_first, gradient, zeros), zero, place, rest, between);
    sum = sum ? add(*sum, part) : part;

    std::size_t axis = rank;  // the next position, in row-major order
    while (axis > 0 && ++place[axis - 1] == windows[axis - 1].size) place[--axis] = 0;
    if (axis == 0) return slice(*sum, before, end, steps);
  }
}

}  // namespace detail

DIST_INLINE Value reduce_windows(std::string_view reduction, Value x, const std::string& start,
                                 const WindowAxes& windows) {
  const Type from = type_of(x);
  std::vector<std::size_t> extents;
  for (std::size_t axis = 0; axis < windows.size(); ++axis) extents.push_back(windows[axis].outputs(from.shape[axis]));
  Operation operation{"reduce_window",
                      {x, constant({from.element, Shape{}}, start)},
                      concat(list("window_dimensions", windows, &WindowAxis::size), ", ",
                             list("window_strides", windows, &WindowAxis::stride), ", ",
                             list("base_dilations", windows, &WindowAxis::dilation), ", ",
                             list("window_dilations", windows, &WindowAxis::window_dilation), ", ", padding(windows)),
                      {}};
  if (reduction == "add")
    operation.pullbacks = {
        [=](Value, Value g) { return reduce_windows("add", g, start, detail::back(windows, from.shape)); }, nullptr};
  else if (detail::are_plain(windows))
    operation.pullbacks = {[=](Value y, Value g) { return detail::to_first_maxima(x, y, g, start, windows); }, nullptr};
  operation.regions.push_back(reducer(reduction, from.element));
  return Trace::current().add(std::move(operation), {from.element, Shape{extents}});
}

}  // namespace dist::hlo::untyped
