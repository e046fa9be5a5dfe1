#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/tensor.hpp>
#include <dist/nn/reference/vectors.hpp>

namespace dist::nn::reference {

/// y = activation(x · kernel + bias). The innermost loops run over units, where memory is contiguous.
template <class Geometry, class T>
class Dense {
  static constexpr std::size_t inputs = Geometry::inputs;
  static constexpr std::size_t units = Geometry::units;

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<const T> kernel, TensorView<const T> bias, TensorView<T> y) {
    for (std::size_t row = 0; row < x.rows(); ++row) {
      const T* const in = x.data() + row * inputs;
      T* const out = y.data() + row * units;
      std::copy_n(bias.data(), units, out);
      for (std::size_t i = 0; i < inputs; ++i) add_scaled(in[i], kernel.data() + i * units, out, units);
      for (std::size_t unit = 0; unit < units; ++unit) out[unit] = Geometry::Activation::apply(out[unit]);
    }
  }

  template <class State>
  void parameter_gradients(State& state, TensorView<const T> x, TensorView<const T> dy, TensorView<T> kernel_gradient,
                           TensorView<T> bias_gradient) {
    for (std::size_t i = 0; i < inputs; ++i) {
      T* const gradient = kernel_gradient.data() + i * units;
      std::fill_n(gradient, units, T{0});
      for (std::size_t row = 0; row < x.rows(); ++row)
        add_scaled(x.data()[row * inputs + i], dy.data() + row * units, gradient, units);
    }
    this->bias_gradient(state, dy, bias_gradient);
  }

  template <class State>
  void bias_gradient(State&, TensorView<const T> dy, TensorView<T> gradient) {
    std::fill_n(gradient.data(), units, T{0});
    for (std::size_t row = 0; row < dy.rows(); ++row) add(dy.data() + row * units, gradient.data(), units);
  }

  template <class State>
  void input_gradient(State&, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    for (std::size_t row = 0; row < dy.rows(); ++row)
      for (std::size_t i = 0; i < inputs; ++i)
        dx.data()[row * inputs + i] = dot(dy.data() + row * units, kernel.data() + i * units, units);
  }
};

}  // namespace dist::nn::reference
