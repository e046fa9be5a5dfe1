#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

#include <dist/hlo/operations.hpp>
#include <dist/hlo/windows.hpp>

namespace dist::hlo {

namespace untyped {

/// Correlates images [N, ..., C] with kernels [..., C / groups, F]; returns [N, ..., F]. `windows` has one entry per
/// spatial axis. Shapes determine the number of groups.
[[nodiscard]] Value convolution(Value images, Value kernels, const WindowAxes& windows);
/// Returns the gradient of images of this shape, if `y` is the gradient of their convolution in one group.
[[nodiscard]] Value transposed_convolution(const Shape& images, Value kernels, Value y, const WindowAxes& windows);

}  // namespace untyped

/// Correlates images [N, H, W, C] with kernels [h, w, C / G, F], without flipping them; returns [N, outputs, outputs,
/// F]. `Along` are Windows for each spatial axis, here H and W; padding is 0. A kernel reads only the channels of its
/// group.
///
///     hlo::convolution<hlo::Windows<3>, hlo::Windows<3>>(images, kernels)
template <class... Along, class T, std::size_t... Images, std::size_t... Kernels>
[[nodiscard]] auto convolution(Traced<T, Images...> images, Traced<T, Kernels...> kernels) {
  using X = Traced<T, Images...>;
  using K = Traced<T, Kernels...>;
  constexpr std::size_t last = sizeof...(Along) + 1;
  static_assert(X::rank == last + 1 && K::rank == last + 1,
                "hlo::convolution needs images and kernels with two more axes than it has hlo::Windows");
  static_assert(
      [] {
        std::size_t axis = 0;
        return ((Along::size == K::extents[axis++]) && ...);
      }(),
      "hlo::convolution: the extents of the kernels differ from their hlo::Windows");
  static_assert(
      X::extents[last] % K::extents[last - 1] == 0 && K::extents[last] % (X::extents[last] / K::extents[last - 1]) == 0,
      "hlo::convolution needs groups with equal numbers of channels and of kernels");
  constexpr auto extents = detail::with_windows<Along...>(detail::with(X::extents, last, K::extents[last]));
  return detail::TracedWith<T, extents>{untyped::convolution(images.value(), kernels.value(), {Along::axis()...})};
}

/// Returns the gradient of images of type `Images` if `y` is the gradient of their convolution, in one group, with
/// these kernels and Windows.
template <class Images, class... Along, class T, std::size_t... Extents, std::size_t... Kernels>
[[nodiscard]] Images transposed_convolution(Traced<T, Extents...> y, Traced<T, Kernels...> kernels) {
  static_assert(std::same_as<decltype(convolution<Along...>(std::declval<Images>(), kernels)), Traced<T, Extents...>>,
                "hlo::transposed_convolution needs the result of a convolution of its images");
  return Images{untyped::transposed_convolution(Images::type().shape, kernels.value(), y.value(), {Along::axis()...})};
}

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/convolution.ipp>
#endif
