#pragma once

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

/// A fully connected layer, activation(x · kernel + bias), along the last axis: rows [a, b, …, inputs] become [a, b, …,
/// units], as in Keras; kernel [inputs, units]. With nn::NoBias as bias initialiser it has no bias.
template <std::size_t Units, class Function = Linear, class KernelInitializer = GlorotUniform,
          class BiasInitializer = Zeros>
struct Dense {
  static_assert(Units > 0, "nn::Dense needs at least one unit");
  using Activation = typename detail::Applied<Function>::Type;

  /// The bound layer.
  template <class In>
  struct On {
    static_assert(
        In::rank > 0,
        "nn::Dense multiplies along the last axis, and its input is a number without axes: give nn::Input<1>");
    using Geometry = DenseGeometry<In::last_extent, Units, detail::ActivationOfKernel<Activation>,
                                   detail::has_bias<BiasInitializer>>;
    using Layer = Dense;
    using Output = FirstExtentsAnd<In, (In::rank > 0 ? In::rank - 1 : 0), Units>;
    static constexpr std::string_view name = "dense";
    static constexpr auto parameters = detail::kernel_and_bias<Geometry>(Shape{In::last_extent, Units}, Units);
    static constexpr bool is_view = false;

    template <std::size_t Which, class T>
    static void initialize(TensorView<T> view, RandomStream stream) {
      using Initializer = std::conditional_t<Which == 0, KernelInitializer, BiasInitializer>;
      Initializer::fill(view, Fans{In::last_extent, Units}, stream);
    }

    template <class Backend, class T>
    using Operation =
        detail::KernelOperation<Backend, typename Backend::template Dense<Geometry, T>, Geometry, Activation, T>;
  };
};

}  // namespace dist::nn
