#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/reduce_op.hpp>
#include <dist/hlo/operations.hpp>

namespace dist::hlo {

namespace untyped {

namespace detail {

/// The extent of elements at a distance of `dilation`.
[[nodiscard]] constexpr std::ptrdiff_t spread(std::size_t elements, std::size_t dilation) noexcept {
  return elements == 0 ? 0 : static_cast<std::ptrdiff_t>((elements - 1) * dilation + 1);
}

}  // namespace detail

/// Windows of equal size along one axis of an array.
struct WindowAxis {
  std::size_t size = 1;
  std::size_t stride = 1;
  /// Padding at the start and at the end; negative padding crops the array.
  std::ptrdiff_t before = 0;
  std::ptrdiff_t behind = 0;
  /// The distance between adjacent elements of the array, and of a window.
  std::size_t dilation = 1;
  std::size_t window_dilation = 1;

  /// The number of windows for an array of this extent.
  [[nodiscard]] constexpr std::size_t outputs(std::size_t extent) const noexcept {
    const std::ptrdiff_t steps =
        before + detail::spread(extent, dilation) + behind - detail::spread(size, window_dilation);
    return steps < 0 ? 0 : static_cast<std::size_t>(steps) / stride + 1;
  }
  /// The windows of the input gradient, from outputs to the array, with reversed elements. `extent` is the array's.
  [[nodiscard]] WindowAxis back(std::size_t extent) const noexcept;
  /// The windows of the kernel gradient, by which the array, of this extent, is correlated with the outputs.
  [[nodiscard]] WindowAxis of_kernels(std::size_t extent) const noexcept;
};
/// One entry per windowed axis.
using WindowAxes = std::vector<WindowAxis>;

/// Attributes: `padding = dense<[[0, 1]]> : tensor<1x2xi64>`, and a list with one member per axis.
[[nodiscard]] std::string padding(const WindowAxes& windows);
[[nodiscard]] std::string list(std::string_view name, const WindowAxes& windows, std::size_t WindowAxis::*number);

/// Reduces each window by "add" or "maximum", from `start`, which is also the padding. `windows` has one entry per
/// axis of `x`. A maximum's gradient passes to its first element in row-major order, or to the first NaN; with
/// dilation or negative padding it is unknown.
[[nodiscard]] Value reduce_windows(std::string_view reduction, Value x, const std::string& start,
                                   const WindowAxes& windows);

}  // namespace untyped

/// Windows of `Size` elements along one axis, `Stride` apart, with padding at the start and at the end.
template <std::size_t Size, std::size_t Stride = 1, std::size_t Before = 0, std::size_t Behind = 0>
struct Windows {
  static_assert(Size > 0 && Stride > 0, "hlo::Windows have a size and a stride of at least 1");
  /// The number of elements of a window.
  static constexpr std::size_t size = Size;

  /// The windows as a value, for the operations of hlo::untyped.
  [[nodiscard]] static constexpr untyped::WindowAxis axis() {
    return {.size = Size,
            .stride = Stride,
            .before = static_cast<std::ptrdiff_t>(Before),
            .behind = static_cast<std::ptrdiff_t>(Behind)};
  }
  /// The number of windows for an array of this extent.
  [[nodiscard]] static constexpr std::size_t outputs(std::size_t extent) { return axis().outputs(extent); }
};

namespace detail {

/// Extents whose axes after the first are numbers of windows.
template <class... Along, std::size_t Rank>
[[nodiscard]] constexpr Extents<Rank> with_windows(Extents<Rank> extents) {
  std::size_t axis = 0;
  ((++axis, extents[axis] = Along::outputs(extents[axis])), ...);
  return extents;
}

}  // namespace detail

/// Reduces windows of `x` by dist::sum or dist::max, like pooling, along the axes between the first and the last.
/// Padding is ignored. A maximum's gradient passes to its first element in row-major order.
///
///     hlo::reduce_windows<hlo::Windows<2, 2>, hlo::Windows<2, 2>>(dist::max, images)  // [N, H, W, C] to [N, H/2, W/2, C]
template <class... Along, class Op, class T, std::size_t... Extents>
[[nodiscard]] auto reduce_windows(Op, Traced<T, Extents...> x) {
  using X = Traced<T, Extents...>;
  static_assert(std::same_as<Op, Sum> || std::same_as<Op, Max>, "hlo::reduce_windows takes dist::sum or dist::max");
  static_assert(sizeof...(Along) + 2 == X::rank,
                "hlo::reduce_windows needs hlo::Windows for each axis between the first and the last");
  constexpr auto extents = detail::with_windows<Along...>(X::extents);
  return detail::TracedWith<T, extents>{
      untyped::reduce_windows(detail::reduction_name<Op>, x.value(), literal(Op::template identity<T>),
                              {untyped::WindowAxis{}, Along::axis()..., untyped::WindowAxis{}})};
}

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/windows.ipp>
#endif
