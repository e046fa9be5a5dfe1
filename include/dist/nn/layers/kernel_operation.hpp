#pragma once

#include <concepts>
#include <type_traits>

#include <dist/nn/activation.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn::detail {

/// A back end's operation that computes the gradient of its input through the activation before it, too.
template <class Kernel, class Before, class Backend, class T>
concept FusesActivation = requires(Kernel kernel, typename Backend::State& state, ViewOn<Backend, const T> in,
                                   ViewOn<Backend, T> out) {
  kernel.template input_gradient<Before>(state, in, in, in, out);
};

/// The Operation of layers that have a kernel and a bias and end in an activation. `Kernel` is the back end's
/// operation.
template <class Backend, class Kernel, class Function, class T>
class KernelOperation {
 public:
  using Activation = Function;

  /// Whether `backward` can apply the gradient of the activation `Before`, that of the layer before, to dx as well.
  template <class Before>
  static constexpr bool fuses = FusesActivation<Kernel, Before, Backend, T>;

  void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
               const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, T> y) {
    kernel_.forward(state, x, parameters[0], parameters[1], y);
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
    if constexpr (!Pass::activation_is_applied) activation_.input_gradient(state, y, dy, dy);
    if constexpr (Pass::stores_kernel_gradient) {
      kernel_.parameter_gradients(state, x, dy, gradients[0], gradients[1]);
    } else {
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
  Kernel kernel_;
  typename Backend::template Elementwise<Activation, T> activation_;
};

}  // namespace dist::nn::detail
