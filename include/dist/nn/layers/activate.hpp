#pragma once

#include <string_view>

#include <dist/nn/activation.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// An activation, any model of nn::Activation, as a separate layer.
template <class Function>
struct Activate {
  using Activation = typename detail::Applied<Function>::Type;

  /// The bound layer.
  template <class In>
  struct On {
    using Layer = Activate;
    using Output = In;
    static constexpr std::string_view name = "activation";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = false;

    /// Computes the layer.
    template <class Backend, class T>
    class Operation {
     public:
      void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
                   const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, T> y) {
        function_.forward(state, x, y);
      }
      template <bool InputGradient>
      void backward(typename Backend::State& state, ViewOn<Backend, const T> x,
                    const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, const T> y, ViewOn<Backend, T> dy,
                    const ParameterViewsOn<Backend, T, 0>&, ViewOn<Backend, T> dx) {
        if constexpr (InputGradient) function_.input_gradient(state, HasGradientOfOutput<Activation> ? y : x, dy, dx);
      }

     private:
      typename Backend::template Elementwise<Activation, T> function_;
    };
  };
};

/// nn::Relu as a separate layer.
struct ReLU {
  /// The bound layer.
  template <class In>
  struct On : Activate<Relu>::On<In> {
    static constexpr std::string_view name = "re_lu";
  };
};

}  // namespace dist::nn
