#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/nn/activation.hpp>
#include <dist/nn/cuda/state.cuh>

namespace dist::nn::cuda {

/// A view of elements in GPU memory.
template <class T>
using View = TensorView<T, dist::cuda::Queue::Space>;

/// y = Function(x)
template <class Function, class T>
struct ApplyTo {
  const T* x;
  T* y;
  DIST_HD void operator()(std::size_t i) const { y[i] = Function::apply(x[i]); }
};
/// dx = the gradient of Function
template <class Function, class T>
struct GradientOf {
  const T* output_or_input;
  const T* dy;
  T* dx;
  DIST_HD void operator()(std::size_t i) const {
    dx[i] = detail::activation_gradient<Function>(output_or_input[i], dy[i]);
  }
};

/// y = Function(y + bias), in rows of the bias's size.
template <class Function, class T>
struct AddBias {
  T* y;
  const T* bias;
  std::size_t size;
  DIST_HD void operator()(std::size_t i) const { y[i] = Function::apply(y[i] + bias[i % size]); }
};

/// Adds the bias of a layer's geometry, if it has one, to the products in y, and applies the activation.
template <class Geometry, class T>
void finish_products(State& state, View<T> y, [[maybe_unused]] View<const T> bias) {
  using Function = typename Geometry::Activation;
  if constexpr (Geometry::has_bias)
    state.queue().for_each({0, y.size()}, AddBias<Function, T>{y.data(), bias.data(), bias.size()});
  else if constexpr (!std::is_same_v<Function, Linear>)
    state.queue().for_each({0, y.size()}, ApplyTo<Function, T>{y.data(), y.data()});
}

/// y = Function(x) for any function; cuDNN only has its own.
template <class Function, class T>
class Elementwise {
 public:
  void forward(State& state, View<const T> x, View<T> y) {
    state.queue().for_each({0, x.size()}, ApplyTo<Function, T>{x.data(), y.data()});
  }

  /// Skips an identity in place.
  void input_gradient(State& state, View<const T> value, View<T> dy, View<T> dx) {
    if (std::is_same_v<Function, Linear> && dx.data() == dy.data()) return;
    state.queue().for_each({0, value.size()}, GradientOf<Function, T>{value.data(), dy.data(), dx.data()});
  }
};

}  // namespace dist::nn::cuda
