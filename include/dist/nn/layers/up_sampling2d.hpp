#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/static_shape.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn {

/// Repeats each row and each column `Size` times, on rows [height, width, channels]: Keras' UpSampling2D with
/// interpolation "nearest". The gradient of a pixel is the sum over its copies.
template <std::size_t Size>
struct UpSampling2D {
  static_assert(Size > 0, "nn::UpSampling2D needs a size of at least one");

  /// The bound layer.
  template <class In>
  struct On {
    static_assert(In::rank == 3,
                  "nn::UpSampling2D takes rows [height, width, channels], but its input has a different number of "
                  "axes: change nn::Input, or put nn::Reshape before it");
    /// The StaticShape of an input row; another image after a failed assertion.
    using Image = std::conditional_t<In::rank == 3, In, StaticShape<1, 1, 1>>;
    using Layer = UpSampling2D;
    using Output =
        StaticShape<Size * Image::template extent<0>, Size * Image::template extent<1>, Image::template extent<2>>;
    static constexpr std::string_view name = "up_sampling2d";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr bool is_view = false;

    /// The back end's sums of windows.
    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template AveragePool2D<PoolGeometry<Output, Size, Size, Valid, SumOfWindow>, T>;
    };

    /// Computes the layer: its gradient sums windows of the output, and its output is the gradient of such sums.
    template <class Backend, class T>
    class Operation {
     public:
      void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
                   const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, T> y) {
        sums_.input_gradient(state, y, x, y);
      }
      template <bool InputGradient>
      void backward(typename Backend::State& state, ViewOn<Backend, const T>,
                    const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, const T>, ViewOn<Backend, T> dy,
                    const ParameterViewsOn<Backend, T, 0>&, ViewOn<Backend, T> dx) {
        if constexpr (InputGradient) sums_.forward(state, dy, dx);
      }

     private:
      detail::KernelFrom<Backend, Asked<T>> sums_;
    };
  };
};

}  // namespace dist::nn
