#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activation.hpp>

namespace dist::nn::reference {

/// y = Function(x), element by element. Bound by memory, so other CPU back ends use it too.
template <class Function, class T>
class Elementwise {
 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    const T* const from = x.data();
    T* const to = y.data();
    const std::size_t size = x.size();
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < size; ++i) to[i] = Function::apply(from[i]);
  }

  /// In place for the identity costs nothing.
  template <class State>
  void input_gradient(State&, TensorView<const T> value, TensorView<T> dy, TensorView<T> dx) {
    if (std::is_same_v<Function, Linear> && dx.data() == dy.data()) return;
    const T* const output_or_input = value.data();
    const T* const from = dy.data();
    T* const to = dx.data();
    const std::size_t size = value.size();
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < size; ++i) to[i] = detail::activation_gradient<Function>(output_or_input[i], from[i]);
  }
};

}  // namespace dist::nn::reference
