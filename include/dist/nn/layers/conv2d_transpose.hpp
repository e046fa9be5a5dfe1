#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/kernel_operation.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn::detail {

/// Adds the bias to a pixel, and applies the activation.
template <class Geometry, class T>
struct FinishPixel {
  const T* bias;
  T* y;

  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t pixel) const {
    T* const out = y + pixel * Geometry::filters;
    for_each_of(threads, [&](std::size_t k) {
      out[k] = Geometry::Activation::apply(Geometry::has_bias ? out[k] + bias[k] : out[k]);
    });
  }
};

/// The kernel of KernelOperation for a Conv2DTransposeGeometry, by the back end's Conv2D of the swapped geometry.
template <class Backend, class Geometry, class T>
class TransposedKernel {
  using State = typename Backend::State;
  template <class Element>
  using View = ViewOn<Backend, Element>;
  static constexpr std::size_t filters = Geometry::filters;

 public:
  void forward(State& state, View<const T> x, View<const T> kernel, [[maybe_unused]] View<const T> bias, View<T> y) {
    swapped_.input_gradient(state, x, kernel, y);
    if constexpr (Geometry::has_bias || !std::is_same_v<typename Geometry::Activation, Linear>)
      for_each_row<Backend>(state, y.size() / filters, filters, FinishPixel<Geometry, T>{bias.data(), y.data()});
  }
  void parameter_gradients(State& state, View<const T> x, View<const T> dy, View<T> kernel_gradient,
                           [[maybe_unused]] View<T> bias_gradient) {
    swapped_.parameter_gradients(state, dy, x, kernel_gradient, {});
    if constexpr (Geometry::has_bias)
      sum_columns<Backend>(state, dy.size() / filters, filters, SumOfElements<T>{dy.data(), filters},
                           bias_gradient.data());
  }
  void input_gradient(State& state, View<const T> dy, View<const T> kernel, View<T> dx) {
    swapped_.forward(state, dy, kernel, {}, dx);
  }

 private:
  typename Backend::template Conv2D<typename Geometry::Swapped, T> swapped_;
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// A transposed convolution with bias and activation, on rows [height, width, channels]; kernel [window, window,
/// filters, channels], as in Keras. It is the input gradient of nn::Conv2D. With padding Same the height is
/// multiplied by the stride, as is the width; Valid adds window - stride to both if the window is larger. With
/// nn::NoBias as bias initialiser it has no bias.
template <std::size_t Filters, std::size_t Window, class Function = Linear, std::size_t Stride = 1,
          class Padding = Valid, class KernelInitializer = GlorotUniform, class BiasInitializer = Zeros>
struct Conv2DTranspose {
  static_assert(Filters > 0, "nn::Conv2DTranspose needs at least one filter");
  static_assert(Window > 0, "nn::Conv2DTranspose needs a window of at least one element");
  static_assert(Stride > 0, "nn::Conv2DTranspose needs a stride of at least one element");
  static_assert(std::is_same_v<Padding, Valid> || std::is_same_v<Padding, Same>,
                "nn::Conv2DTranspose takes the padding nn::Valid or nn::Same");
  using Activation = typename detail::Applied<Function>::Type;

  /// The sizes for rows of shape `In`; for another image after a failed assertion.
  template <class In>
  using GeometryOn =
      Conv2DTransposeGeometry<std::conditional_t<In::rank == 3, In, StaticShape<1, 1, 1>>, Filters, Window, Stride,
                              Padding, detail::ActivationOfKernel<Activation>, detail::has_bias<BiasInitializer>>;

  /// The bound layer.
  template <class In>
  struct On : detail::BoundConvolution<typename GeometryOn<In>::Swapped, Activation, KernelInitializer, BiasInitializer,
                                       Window, Window> {
    static_assert(In::rank == 3,
                  "nn::Conv2DTranspose takes rows [height, width, channels], but its input has a different number of "
                  "axes: change nn::Input, or put nn::Reshape before it");
    using Geometry = GeometryOn<In>;
    using Layer = Conv2DTranspose;
    using Output = typename Geometry::Output;
    static constexpr std::string_view name = "conv2d_transpose";
    static constexpr auto parameters =
        detail::kernel_and_bias<Geometry>(Shape{Window, Window, Filters, Geometry::Swapped::filters}, Filters);

    template <class Backend, class T>
    using Operation =
        detail::KernelOperation<Backend, detail::TransposedKernel<Backend, Geometry, T>, Geometry, Activation, T>;
  };
};

}  // namespace dist::nn
