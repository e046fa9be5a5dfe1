/// Convolution and pooling layers in programs for XLA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include <dist/core/reduce_op.hpp>
#include <dist/hlo/convolution.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <dist/hlo/windows.hpp>
#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/layers/conv1d.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/conv2d_transpose.hpp>
#include <dist/nn/layers/depthwise_conv2d.hpp>
#include <dist/nn/layers/pool1d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/up_sampling2d.hpp>

namespace dist::nn {

namespace detail {

/// A WindowGeometry's windows along rows and columns.
template <class Geometry>
using WindowsOfRows = hlo::Windows<Geometry::window_height, Geometry::stride, Geometry::pad_top, Geometry::pad_bottom>;
template <class Geometry>
using WindowsOfColumns = hlo::Windows<Geometry::window, Geometry::stride, Geometry::pad_left, Geometry::pad_right>;

/// Correlates images with kernels, then applies the bias and the activation.
struct LoweredConvolution {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State&) {
    using G = typename Bound::Geometry;
    const auto images = reshaped_rows(x, typename G::Input{});
    // The kernels of a group are already contiguous.
    const auto kernel =
        hlo::reshape<G::window_height, G::window, G::group_channels, G::filters>(std::get<0>(parameters));
    const auto products =
        hlo::convolution<WindowsOfRows<G>, WindowsOfColumns<G>>(arguments.factor(images), arguments.factor(kernel));
    return reshaped_rows(finished_products<typename Bound::Activation>(arguments, products, parameters),
                         typename Bound::Output{});
  }
};

template <class Geometry, class Op, hlo::TracedArray X>
[[nodiscard]] auto pooled(Op op, X x) {
  return hlo::reduce_windows<WindowsOfRows<Geometry>, WindowsOfColumns<Geometry>>(op, x);
}

/// The lowering of nn::MaxPool1D and nn::MaxPool2D.
struct LoweredMaxPool {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters&, State&) {
    const auto maxima = pooled<typename Bound::Geometry>(max, reshaped_rows(x, typename Bound::Image{}));
    return reshaped_rows(maxima, typename Bound::Output{});
  }
};

/// The lowering of nn::AveragePool1D and nn::AveragePool2D.
struct LoweredAveragePool {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters&, State&) {
    using G = typename Bound::Geometry;
    using T = typename X::Element;
    const auto sums = pooled<G>(sum, reshaped_rows(x, typename Bound::Image{}));
    if constexpr (G::counts_padding) {
      return reshaped_rows(sums / static_cast<T>(G::window_height * G::window), typename Bound::Output{});
    } else {
      using Y = std::remove_const_t<decltype(sums)>;
      // XLA counts a window's elements inside the image at compile time.
      const hlo::Traced<T, 1, G::height, G::width, 1> one{1};
      const auto counts = hlo::reshape<G::output_height, G::output_width>(pooled<G>(sum, one));
      return reshaped_rows(sums / hlo::broadcast<Y, 1, 2>(counts), typename Bound::Output{});
    }
  }
};

/// The lowering of nn::GlobalAveragePool1D and nn::GlobalAveragePool2D.
struct LoweredGlobalAveragePool {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters&, State&) {
    const auto sums = hlo::reduce<1, 2>(sum, reshaped_rows(x, typename Bound::Image{}));
    return sums / static_cast<typename X::Element>(Bound::Geometry::pixels);
  }
};

/// The lowering of nn::GlobalMaxPool1D and nn::GlobalMaxPool2D.
struct LoweredGlobalMaxPool {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters&, State&) {
    constexpr std::size_t pixels = Bound::Geometry::pixels;
    using Image = hlo::Traced<typename X::Element, X::extents[0], pixels, Bound::Geometry::channels>;
    using Numbers = typename Image::template With<std::int32_t>;
    const Image image = hlo::reshape<X::extents[0], pixels, Bound::Geometry::channels>(x);
    const auto maxima = hlo::stop_gradient(hlo::reduce<1>(max, image));
    // Selects only the first maximum, or the first NaN, which alone receives the gradient.
    const Numbers number = hlo::iota<Numbers, 1>();
    const Numbers of_nan = hlo::select(image != image, number, static_cast<std::int32_t>(pixels));
    const auto first = hlo::reduce<1>(min, hlo::select(image == hlo::broadcast<Image, 0, 2>(maxima), number, of_nan));
    return hlo::reduce<1>(sum, hlo::select(number == hlo::broadcast<Numbers, 0, 2>(first), image, 0));
  }
};

}  // namespace detail

/// The lowering of nn::Conv2D.
template <std::size_t Filters, std::size_t Window, class Function, std::size_t Stride, class Padding,
          class KernelInitializer, class BiasInitializer, std::size_t Groups>
struct Lowering<Conv2D<Filters, Window, Function, Stride, Padding, KernelInitializer, BiasInitializer, Groups>>
    : detail::LoweredConvolution {};

/// The lowering of nn::DepthwiseConv2D.
template <std::size_t Window, class Function, std::size_t Stride, class Padding, std::size_t Multiplier,
          class KernelInitializer, class BiasInitializer>
struct Lowering<DepthwiseConv2D<Window, Function, Stride, Padding, Multiplier, KernelInitializer, BiasInitializer>>
    : detail::LoweredConvolution {};

/// The lowering of nn::Conv1D.
template <std::size_t Filters, std::size_t Window, class Function, std::size_t Stride, class Padding,
          class KernelInitializer, class BiasInitializer>
struct Lowering<Conv1D<Filters, Window, Function, Stride, Padding, KernelInitializer, BiasInitializer>>
    : detail::LoweredConvolution {};

/// The lowering of nn::Conv2DTranspose.
template <std::size_t Filters, std::size_t Window, class Function, std::size_t Stride, class Padding,
          class KernelInitializer, class BiasInitializer>
struct Lowering<Conv2DTranspose<Filters, Window, Function, Stride, Padding, KernelInitializer, BiasInitializer>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters& parameters, State&) {
    using G = typename Bound::Geometry::Swapped;
    const auto products = hlo::transposed_convolution<detail::TracedRows<X, typename Bound::Output>,
                                                      detail::WindowsOfRows<G>, detail::WindowsOfColumns<G>>(
        arguments.factor(x), arguments.factor(std::get<0>(parameters)));
    return detail::finished_products<typename Bound::Activation>(arguments, products, parameters);
  }
};

/// The lowering of nn::MaxPool2D.
template <std::size_t Window, std::size_t Stride, class Padding>
struct Lowering<MaxPool2D<Window, Stride, Padding>> : detail::LoweredMaxPool {};
/// The lowering of nn::MaxPool1D.
template <std::size_t Window, std::size_t Stride, class Padding>
struct Lowering<MaxPool1D<Window, Stride, Padding>> : detail::LoweredMaxPool {};

/// The lowering of nn::AveragePool2D.
template <std::size_t Window, std::size_t Stride, class Padding, class Counting>
struct Lowering<AveragePool2D<Window, Stride, Padding, Counting>> : detail::LoweredAveragePool {};
/// The lowering of nn::AveragePool1D.
template <std::size_t Window, std::size_t Stride, class Padding, class Counting>
struct Lowering<AveragePool1D<Window, Stride, Padding, Counting>> : detail::LoweredAveragePool {};

/// The lowering of nn::UpSampling2D.
template <std::size_t Size>
struct Lowering<UpSampling2D<Size>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters&, State&) {
    constexpr auto e = X::extents;
    using Copies = hlo::Traced<typename X::Element, e[0], e[1], Size, e[2], Size, e[3]>;
    return detail::reshaped_rows(hlo::broadcast<Copies, 0, 1, 3, 5>(x), typename Bound::Output{});
  }
};

/// The lowering of nn::GlobalAveragePool2D.
template <>
struct Lowering<GlobalAveragePool2D> : detail::LoweredGlobalAveragePool {};
/// The lowering of nn::GlobalAveragePool1D.
template <>
struct Lowering<GlobalAveragePool1D> : detail::LoweredGlobalAveragePool {};

/// The lowering of nn::GlobalMaxPool2D.
template <>
struct Lowering<GlobalMaxPool2D> : detail::LoweredGlobalMaxPool {};
/// The lowering of nn::GlobalMaxPool1D.
template <>
struct Lowering<GlobalMaxPool1D> : detail::LoweredGlobalMaxPool {};

}  // namespace dist::nn
