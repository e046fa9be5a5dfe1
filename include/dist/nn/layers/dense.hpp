#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <dist/core/random.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/kernel_operation.hpp>

namespace dist::nn {

/// A fully connected layer, activation(x · kernel + bias); kernel [inputs, units].
template <std::size_t Units, class Function = Linear, class KernelInitializer = GlorotUniform,
          class BiasInitializer = Zeros>
struct Dense {
  static_assert(Units > 0, "nn::Dense needs at least one unit");
  using Activation = typename detail::Applied<Function>::Type;

  /// The bound layer.
  template <class In>
  struct On {
    static_assert(
        In::rank == 1,
        "nn::Dense takes rows with one axis, but its input has a different number of axes: put nn::Flatten before it");
    using Geometry = DenseGeometry<In::elements, Units, detail::ActivationOfKernel<Activation>>;
    using Layer = Dense;
    using Output = StaticShape<Units>;
    static constexpr std::string_view name = "dense";
    static constexpr std::array parameters{ParameterSpec{"kernel", Shape{In::elements, Units}},
                                           ParameterSpec{"bias", Shape{Units}}};
    static constexpr bool is_view = false;

    template <std::size_t Which, class T>
    static void initialize(TensorView<T> view, RandomStream stream) {
      using Initializer = std::conditional_t<Which == 0, KernelInitializer, BiasInitializer>;
      Initializer::fill(view, Fans{In::elements, Units}, stream);
    }

    template <class Backend, class T>
    using Operation = detail::KernelOperation<Backend, typename Backend::template Dense<Geometry, T>, Activation, T>;
  };
};

}  // namespace dist::nn
