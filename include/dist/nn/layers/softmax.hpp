#pragma once

#include <cstddef>
#include <string_view>

#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/softmax.hpp>

namespace dist::nn {

/// Softmax along the last axis: a distribution per row or pixel. For predictions and for weights that sum to 1;
/// losses take the logits, which is more precise. Not an Activation, because it is not elementwise.
struct Softmax {
  /// The bound layer.
  template <class In>
  struct On {
    static_assert(
        In::rank > 0,
        "nn::Softmax computes distributions along the last axis, but its input has no axis: put nn::Reshape before it");
    using Layer = Softmax;
    using Output = In;
    /// The number of elements that add up to 1.
    static constexpr std::size_t classes = In::last_extent;
    static constexpr std::string_view name = "softmax";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = false;

    /// Computes the layer.
    template <class Backend, class T>
    class Operation {
     public:
      void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
                   const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, T> y) {
        kernel_.forward(state, x, y);
      }
      template <bool InputGradient>
      void backward(typename Backend::State& state, ViewOn<Backend, const T>,
                    const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, const T> y, ViewOn<Backend, T> dy,
                    const ParameterViewsOn<Backend, T, 0>&, ViewOn<Backend, T> dx) {
        if constexpr (InputGradient) kernel_.input_gradient(state, y, dy, dx);
      }

     private:
      detail::SoftmaxKernel<Backend, classes, T> kernel_;
    };
  };
};

}  // namespace dist::nn
