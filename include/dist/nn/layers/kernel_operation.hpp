#pragma once

#include <dist/core/tensor.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn::detail {

/// The Operation of layers that have a kernel and a bias and end in an activation. `Kernel` is the back end's
/// operation.
template <class Backend, class Kernel, class Activation, class T>
class KernelOperation {
 public:
  void forward(typename Backend::State& state, TensorView<const T> x, const ParameterViews<const T, 2>& parameters,
               TensorView<T> y) {
    kernel_.forward(state, x, parameters[0], parameters[1], y);
  }

  template <bool InputGradient>
  void backward(typename Backend::State& state, TensorView<const T> x, const ParameterViews<const T, 2>& parameters,
                TensorView<const T> y, TensorView<T> dy, const ParameterViews<T, 2>& gradients, TensorView<T> dx) {
    activation_.input_gradient(state, y, dy, dy);
    kernel_.parameter_gradients(state, x, dy, gradients[0], gradients[1]);
    if constexpr (InputGradient) kernel_.input_gradient(state, dy, parameters[0], dx);
  }

 private:
  Kernel kernel_;
  typename Backend::template Elementwise<Activation, T> activation_;
};

}  // namespace dist::nn::detail
