#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include <dist/core/text.hpp>
#include <dist/hlo/convolution.hpp>

// Both gradients of a convolution are convolutions of operands with permuted axes. XLA accepts most permutations as
// attributes, but then transposes the operands itself: on CPUs this is not faster, and 3 to 18 times slower for a
// reversed kernel (27 November 2026). With a single axis order, gradients of any order exist.

namespace dist::hlo::untyped {

namespace detail {

/// Exchanges `axis` with the `groups` equal parts of the last axis.
[[nodiscard]] DIST_INLINE Value exchanged(Value x, std::size_t axis, std::size_t groups) {
  const Shape shape = type_of(x).shape;
  const std::size_t last = shape.rank() - 1;
  Axes extents = extents_of(shape);
  const std::size_t of_group = extents[last] / groups;
  Axes divided = extents;
  divided[last] = groups;
  divided.push_back(of_group);
  Axes order = axes_in_order(divided.size());
  std::swap(order[axis], order.back());
  extents[last] = groups * extents[axis];
  extents[axis] = of_group;
  return reshape(transpose(reshape(x, Shape{divided}), order), Shape{extents});
}

[[nodiscard]] DIST_INLINE Value image_gradient(const Shape& images, Value kernels, Value gradient,
                                               const WindowAxes& windows, std::size_t groups) {
  WindowAxes back;
  for (std::size_t i = 0; i < windows.size(); ++i) back.push_back(windows[i].back(images[i + 1]));
  return convolution(gradient, exchanged(reverse(kernels, axes_in_order(windows.size())), windows.size(), groups),
                     back);
}

/// Sums over the batch like the forward pass over channels.
[[nodiscard]] DIST_INLINE Value kernel_gradient(Value images, Value gradient, const WindowAxes& windows,
                                                std::size_t groups) {
  WindowAxes of_kernels;
  for (std::size_t i = 0; i < windows.size(); ++i)
    of_kernels.push_back(windows[i].of_kernels(type_of(images).shape[i + 1]));
  Axes first_but_one_last = axes_in_order(windows.size() + 2);
  std::rotate(first_but_one_last.begin(), first_but_one_last.begin() + 1, first_but_one_last.end() - 1);
  const Value kernels = convolution(exchanged(images, 0, groups), transpose(gradient, first_but_one_last), of_kernels);
  return transpose(kernels, first_but_one_last);
}

}  // namespace detail

DIST_INLINE Value convolution(Value images, Value kernels, const WindowAxes& windows) {
  const Type from = type_of(images);
  const Shape kernel = type_of(kernels).shape;
  const std::size_t last = windows.size() + 1;
  const std::size_t groups = from.shape[last] / kernel[last - 1];
  Axes extents{from.shape[0]};
  std::string axes;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    extents.push_back(windows[i].outputs(from.shape[i + 1]));
    axes += concat(i, ", ");
  }
  extents.push_back(kernel[last]);
  return Trace::current().add(
      {"convolution",
       {images, kernels},
       concat(list("window_strides", windows, &WindowAxis::stride), ", ", padding(windows), ", ",
              list("lhs_dilation", windows, &WindowAxis::dilation), ", ",
              list("rhs_dilation", windows, &WindowAxis::window_dilation),
              ", window_reversal = array<i1: ", dist::joined(windows, ", ", [](const WindowAxis&) { return "false"; }),
              ">, dimension_numbers = #stablehlo.conv<[b, ", axes, "f]x[", axes, "i, o]->[b, ", axes, "f]>, ",
              number("feature_group_count", groups), ", ", number("batch_group_count", 1)),
       {[=](Value, Value g) { return detail::image_gradient(from.shape, kernels, g, windows, groups); },
        [=](Value, Value g) { return detail::kernel_gradient(images, g, windows, groups); }}},
      {from.element, Shape{extents}});
}

DIST_INLINE Value transposed_convolution(const Shape& images, Value kernels, Value y, const WindowAxes& windows) {
  return detail::image_gradient(images, kernels, y, windows, 1);
}

}  // namespace dist::hlo::untyped
