#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/tensor.hpp>
#include <dist/nn/onednn/descriptors.hpp>
#include <dist/nn/onednn/plans.hpp>
#include <dist/nn/onednn/primitive.hpp>
#include <dist/nn/reference/vectors.hpp>

namespace dist::nn::onednn {

/// Three matrix products on plain row-major memory. Measured against inner_product, whose gradient of the
/// input is slow on [in, out] kernels or needs a reordered copy of the kernel in every step.
template <class Geometry, class T>
class Dense {
 public:
  void forward(State& state, TensorView<const T> x, TensorView<const T> kernel, TensorView<const T> bias,
               TensorView<T> y) {
    forward_
        .for_rows(x.rows(),
                  [&] {
                    return product(forward_label, state, tensor({rows(x), inputs}, Tag::ab),
                                   tensor({inputs, units}, Tag::ab), tensor({1, units}, Tag::ab),
                                   tensor({rows(x), units}, Tag::ab), attributes<typename Geometry::Activation>());
                  })
        .execute(state, {x.data(), kernel.data(), y.data(), bias.data()});
  }

  void parameter_gradients(State& state, TensorView<const T> x, TensorView<const T> dy, TensorView<T> kernel_gradient,
                           TensorView<T> bias_gradient) {
    kernel_gradient_
        .for_rows(x.rows(),
                  [&] {
                    return product(kernel_label, state, tensor({inputs, rows(x)}, Tag::ba),
                                   tensor({rows(x), units}, Tag::ab), Descriptor{}, tensor({inputs, units}, Tag::ab),
                                   attributes());
                  })
        .execute(state, {x.data(), dy.data(), kernel_gradient.data()});
    std::fill_n(bias_gradient.data(), Geometry::units, T{0});
    for (std::size_t row = 0; row < dy.rows(); ++row)
      reference::add(dy.data() + row * Geometry::units, bias_gradient.data(), Geometry::units);
  }

  void input_gradient(State& state, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    input_gradient_
        .for_rows(dy.rows(),
                  [&] {
                    return product(input_label, state, tensor({rows(dy), units}, Tag::ab),
                                   tensor({units, inputs}, Tag::ba), Descriptor{}, tensor({rows(dy), inputs}, Tag::ab),
                                   attributes());
                  })
        .execute(state, {dy.data(), kernel.data(), dx.data()});
  }

 private:
  static constexpr auto inputs = static_cast<dnnl::memory::dim>(Geometry::inputs);
  static constexpr auto units = static_cast<dnnl::memory::dim>(Geometry::units);
  static constexpr Label forward_label{"the matmul of nn::Dense", &Geometry::describe};
  static constexpr Label kernel_label{"the matmul for the kernel gradient of nn::Dense", &Geometry::describe};
  static constexpr Label input_label{"the matmul for the input gradient of nn::Dense", &Geometry::describe};

  [[nodiscard]] static dnnl::memory::dim rows(TensorView<const T> batch) {
    return static_cast<dnnl::memory::dim>(batch.rows());
  }

  /// Arguments in the order left, right, result, and bias where its descriptor is not zero.
  [[nodiscard]] static Primitive product(const Label& label, State& state, const Descriptor& left,
                                         const Descriptor& right, const Descriptor& bias, const Descriptor& result,
                                         const dnnl::primitive_attr& attributes) {
    return translated(label, [&] {
      const auto descriptor = matmul(state.engine(), left, right, bias, result, attributes);
      const dnnl::matmul primitive{descriptor};
      if (bias == Descriptor{})
        return Primitive{label,
                         state,
                         descriptor,
                         primitive,
                         {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}}};
      return Primitive{
          label,
          state,
          descriptor,
          primitive,
          {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}, {DNNL_ARG_BIAS, bias}}};
    });
  }

  Plans<Primitive> forward_;
  Plans<Primitive> kernel_gradient_;
  Plans<Primitive> input_gradient_;
};

}  // namespace dist::nn::onednn
