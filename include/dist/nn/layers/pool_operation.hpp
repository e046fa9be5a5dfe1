#pragma once

#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn::detail {

/// The Operation of layers that pool. `Kernel` is the back end's operation.
template <class Backend, class Kernel, class T>
class PoolOperation {
 public:
  void forward(typename Backend::State& state, ViewOn<Backend, const T> x, const ParameterViewsOn<Backend, const T, 0>&,
               ViewOn<Backend, T> y) {
    kernel_.forward(state, x, y);
  }
  template <bool InputGradient>
  void backward(typename Backend::State& state, ViewOn<Backend, const T> x,
                const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, const T>, ViewOn<Backend, T> dy,
                const ParameterViewsOn<Backend, T, 0>&, ViewOn<Backend, T> dx) {
    if constexpr (InputGradient) kernel_.input_gradient(state, x, dy, dx);
  }

 private:
  Kernel kernel_;
};

}  // namespace dist::nn::detail
