#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

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

/// The Operation of layers with kernel, bias and activation. `Kernel` is the back end's operation, which applies
/// ActivationOfKernel.
template <class Backend, class Kernel, class Function, class T>
class KernelOperation {
 public:
  using Activation = Function;
  static constexpr bool skips_parameter_gradients = true;

  /// True if `backward` can also apply the gradient of the preceding activation `Before`.
  template <class Before>
  static constexpr bool fuses = HasGradientOfOutput<Before>&& FusesActivation<Kernel, Before, Backend, T>;

  void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
               const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, T> y) {
    if constexpr (HasGradientOfOutput<Function>) {
      kernel_.forward(state, x, parameters[0], parameters[1], y);
    } else {
      if (before_rows_ < y.rows()) {
        before_ = make_layer_memory<Backend, T>(queue_of<Backend>(state), y.size());
        before_rows_ = y.rows();
      }
      const ViewOn<Backend, T> before{before_.data(), y.shape()};
      kernel_.forward(state, x, parameters[0], parameters[1], before);
      activation_.forward(state, before, y);
    }
  }

  template <bool InputGradient>
  void backward(typename Backend::State& state, ViewOn<Backend, const T> x,
                const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, const T> y,
                ViewOn<Backend, T> dy, const ParameterViewsOn<Backend, T, 2>& gradients, ViewOn<Backend, T> dx) {
    fused_backward<BackwardPass<InputGradient>>(state, x, parameters, y, dy, gradients, dx);
  }

  template <class Pass>
  void fused_backward(typename Backend::State& state, ViewOn<Backend, const T> x,
                      const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, const T> y,
                      ViewOn<Backend, T> dy, const ParameterViewsOn<Backend, T, 2>& gradients, ViewOn<Backend, T> dx) {
    if constexpr (!HasGradientOfOutput<Function>) {
      activation_.input_gradient(state, ViewOn<Backend, const T>{before_.data(), y.shape()}, dy, dy);
    } else if constexpr (!Pass::activation_is_applied) {
      activation_.input_gradient(state, y, dy, dy);
    }
    if constexpr (Pass::stores_kernel_gradient) {
      kernel_.parameter_gradients(state, x, dy, gradients[0], gradients[1]);
    } else if constexpr (Pass::stores_bias_gradient) {
      kernel_.bias_gradient(state, dy, gradients[1]);
    }
    if constexpr (Pass::input_gradient) {
      if constexpr (std::same_as<typename Pass::Before, Linear>) {
        kernel_.input_gradient(state, dy, parameters[0], dx);
      } else {
        kernel_.template input_gradient<typename Pass::Before>(state, dy, parameters[0], x, dx);
      }
    }
  }

 private:
  struct Nothing {};

  Kernel kernel_;
  typename Backend::template Elementwise<Activation, T> activation_;
  /// The activation's input, if its gradient needs it.
  [[no_unique_address]] std::conditional_t<HasGradientOfOutput<Function>, Nothing, LayerMemory<Backend, T>> before_;
  std::size_t before_rows_ = 0;
};

}  // namespace dist::nn::detail
