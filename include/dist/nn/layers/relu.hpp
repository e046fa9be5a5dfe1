#pragma once

#include <string_view>

#include <dist/nn/activation.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// nn::Relu as a layer of its own, where the layer before takes no activation.
struct ReLU {
  template <class In>
  struct On {
    using Output = In;
    static constexpr std::string_view name = "re_lu";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = false;

    template <class Backend, class T>
    class Operation {
     public:
      void forward(typename Backend::State& state, TensorView<const T> x, const ParameterViews<const T, 0>&,
                   TensorView<T> y) {
        relu_.forward(state, x, y);
      }
      template <bool InputGradient>
      void backward(typename Backend::State& state, TensorView<const T>, const ParameterViews<const T, 0>&,
                    TensorView<const T> y, TensorView<T> dy, const ParameterViews<T, 0>&, TensorView<T> dx) {
        if constexpr (InputGradient) relu_.input_gradient(state, y, dy, dx);
      }

     private:
      typename Backend::template Elementwise<Relu, T> relu_;
    };
  };
};

}  // namespace dist::nn
