#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include <dist/core/shape.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn::detail {

/// A kernel that can apply the preceding activation's gradient to its input gradient.
template <class Kernel, class Before, class Backend, class T>
concept FusesActivation = requires(Kernel kernel, typename Backend::State& state, ViewOn<Backend, const T> in,
                                   ViewOn<Backend, T> out) {
  kernel.template input_gradient<Before>(state, in, in, in, out);
};

/// The activation that the kernel applies: Linear if the gradient of `Function` needs its input, which the layer
/// keeps.
template <class Function>
using ActivationOfKernel = std::conditional_t<HasGradientOfOutput<Function>, Function, Linear>;

/// The parameters of a layer with a kernel, and a bias if its geometry has one.
template <class Geometry>
[[nodiscard]] constexpr auto kernel_and_bias(const Shape& kernel, [[maybe_unused]] std::size_t bias) {
  if constexpr (Geometry::has_bias)
    return std::array{ParameterSpec{"kernel", kernel}, ParameterSpec{"bias", Shape{bias}}};
  else
    return std::array{ParameterSpec{"kernel", kernel}};
}

/// The Operation of layers with kernel, optional bias and activation. `Kernel` is the back end's operation of this
/// geometry, which applies ActivationOfKernel. It takes batches of `Geometry::Input`, and all axes before these are
/// its rows.
template <class Backend, class Kernel, class Geometry, class Function, class T>
class KernelOperation {
  using State = typename Backend::State;
  template <class Element>
  using View = ViewOn<Backend, Element>;
  template <class Element>
  using Parameters = ParameterViewsOn<Backend, Element, Geometry::has_bias ? 2 : 1>;

 public:
  using Activation = Function;
  static constexpr bool skips_parameter_gradients = true;

  /// True if `backward` can also apply the gradient of the preceding activation `Before`.
  template <class Before>
  static constexpr bool fuses = HasGradientOfOutput<Before>&& FusesActivation<Kernel, Before, Backend, T>;

  void forward(State& state, View<const T> x, const Parameters<const T>& parameters, View<T> y) {
    const View<const T> in = batch_of<typename Geometry::Input>(x);
    const View<T> out = batch_of<typename Geometry::Output>(y);
    if constexpr (HasGradientOfOutput<Function>) {
      kernel_.forward(state, in, parameters[0], bias_of(parameters), out);
    } else {
      if (before_rows_ < y.rows()) {
        before_ = make_layer_memory<Backend, T>(queue_of<Backend>(state), y.size());
        before_rows_ = y.rows();
      }
      const View<T> before{before_.data(), out.shape()};
      kernel_.forward(state, in, parameters[0], bias_of(parameters), before);
      activation_.forward(state, before, out);
    }
  }

  template <bool InputGradient>
  void backward(State& state, View<const T> x, const Parameters<const T>& parameters, View<const T> y, View<T> dy,
                const Parameters<T>& gradients, View<T> dx) {
    fused_backward<BackwardPass<InputGradient>>(state, x, parameters, y, dy, gradients, dx);
  }

  template <class Pass>
  void fused_backward(State& state, View<const T> x, const Parameters<const T>& parameters, View<const T> y, View<T> dy,
                      const Parameters<T>& gradients, View<T> dx) {
    const View<const T> in = batch_of<typename Geometry::Input>(x);
    const View<T> slope = batch_of<typename Geometry::Output>(dy);
    if constexpr (!HasGradientOfOutput<Function>) {
      activation_.input_gradient(state, View<const T>{before_.data(), slope.shape()}, slope, slope);
    } else if constexpr (!Pass::activation_is_applied) {
      activation_.input_gradient(state, View<const T>{y.data(), slope.shape()}, slope, slope);
    }
    if constexpr (Pass::stores_kernel_gradient) {
      kernel_.parameter_gradients(state, in, slope, gradients[0], bias_of(gradients));
    } else if constexpr (Pass::stores_bias_gradient && Geometry::has_bias) {
      kernel_.bias_gradient(state, slope, gradients[1]);
    }
    if constexpr (Pass::input_gradient) {
      const View<T> to{dx.data(), in.shape()};
      if constexpr (std::same_as<typename Pass::Before, Linear>) {
        kernel_.input_gradient(state, slope, parameters[0], to);
      } else {
        kernel_.template input_gradient<typename Pass::Before>(state, slope, parameters[0], in, to);
      }
    }
  }

 private:
  struct Nothing {};

  /// Returns the same elements, as a batch of `Row`.
  template <class Row, class Element>
  [[nodiscard]] static View<Element> batch_of(View<Element> view) {
    return {view.data(), Row::shape().stacked(view.size() / Row::elements)};
  }
  /// Returns the bias, or its gradient; an empty view if the geometry has none.
  template <class Element>
  [[nodiscard]] static View<Element> bias_of([[maybe_unused]] const Parameters<Element>& parameters) {
    if constexpr (Geometry::has_bias)
      return parameters[1];
    else
      return {};
  }

  Kernel kernel_;
  typename Backend::template Elementwise<Activation, T> activation_;
  /// The activation's input, if its gradient needs it.
  [[no_unique_address]] std::conditional_t<HasGradientOfOutput<Function>, Nothing, LayerMemory<Backend, T>> before_;
  std::size_t before_rows_ = 0;
};

}  // namespace dist::nn::detail
