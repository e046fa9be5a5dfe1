#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <utility>

#include <dist/core/tensor.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/onednn/descriptors.hpp>
#include <dist/nn/onednn/elementwise.hpp>
#include <dist/nn/onednn/primitive.hpp>
#include <dist/nn/plans.hpp>

namespace dist::nn::onednn {

/// oneDNN's convolution on our images as they are. It chooses the layout of the kernel, which is small and
/// copied on the way: on the plain one it falls back to a path that takes four times as long.
template <class Geometry, class T>
class Conv2DPrimitives {
 public:
  void forward(State& state, TensorView<const T> x, TensorView<const T> kernel, TensorView<const T> bias,
               TensorView<T> y) {
    Plan& plan = forward_.for_rows(x.rows(), [&] {
      return translated(forward_label, [&] {
        const Convolution tensors = convolution(x.rows());
        const auto descriptor = onednn::forward(state.engine(), tensors, attributes());
        return Plan{forward_label, state, plain_kernel(), descriptor.weights_desc(),
                    Primitive{forward_label,
                              state,
                              descriptor,
                              dnnl::convolution_forward{descriptor},
                              {{DNNL_ARG_SRC, tensors.src},
                               {DNNL_ARG_WEIGHTS, descriptor.weights_desc()},
                               {DNNL_ARG_BIAS, tensors.bias},
                               {DNNL_ARG_DST, tensors.dst}}}};
      });
    });
    plan.primitive.execute(state, {x.data(), plan.chosen_layout(state, kernel.data()), bias.data(), y.data()});
    if constexpr (!std::same_as<typename G::Activation, Linear>) activation_.forward(state, y, y);
  }

  void parameter_gradients(State& state, TensorView<const T> x, TensorView<const T> dy, TensorView<T> kernel_gradient,
                           TensorView<T> bias_gradient) {
    Plan& plan = kernel_gradient_.for_rows(x.rows(), [&] {
      return translated(kernel_label, [&] {
        const Convolution tensors = convolution(x.rows());
        const auto descriptor = backward_weights(state.engine(), tensors);
        return Plan{kernel_label, state, descriptor.diff_weights_desc(), plain_kernel(),
                    Primitive{kernel_label,
                              state,
                              descriptor,
                              dnnl::convolution_backward_weights{descriptor},
                              {{DNNL_ARG_SRC, tensors.src},
                               {DNNL_ARG_DIFF_DST, tensors.dst},
                               {DNNL_ARG_DIFF_WEIGHTS, descriptor.diff_weights_desc()},
                               {DNNL_ARG_DIFF_BIAS, tensors.bias}}}};
      });
    });
    T* const result = plan.reorder ? static_cast<T*>(state.copy()) : kernel_gradient.data();
    plan.primitive.execute(state, {x.data(), dy.data(), result, bias_gradient.data()});
    if (plan.reorder) plan.reorder->execute(state, {result, kernel_gradient.data()});
  }

  void input_gradient(State& state, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    Plan& plan = input_gradient_.for_rows(dy.rows(), [&] {
      return translated(input_label, [&] {
        const Convolution tensors = convolution(dy.rows());
        const auto descriptor = backward_data(state.engine(), tensors);
        return Plan{input_label, state, plain_kernel(), descriptor.weights_desc(),
                    Primitive{input_label,
                              state,
                              descriptor,
                              dnnl::convolution_backward_data{descriptor},
                              {{DNNL_ARG_DIFF_DST, tensors.dst},
                               {DNNL_ARG_WEIGHTS, descriptor.weights_desc()},
                               {DNNL_ARG_DIFF_SRC, tensors.src}}}};
      });
    });
    plan.primitive.execute(state, {dy.data(), plan.chosen_layout(state, kernel.data()), dx.data()});
  }

 private:
  using G = Geometry;
  using Dim = dnnl::memory::dim;
  static constexpr Label forward_label{"the convolution of nn::Conv2D", &Geometry::describe};
  static constexpr Label kernel_label{"the convolution for the kernel gradient of nn::Conv2D", &Geometry::describe};
  static constexpr Label input_label{"the convolution for the input gradient of nn::Conv2D", &Geometry::describe};

  /// A primitive, and the copy of the kernel or its gradient between our layout and the primitive's, if they
  /// differ.
  struct Plan {
    Plan(const Label& label, State& state, const Descriptor& from, const Descriptor& to, Primitive made)
        : primitive(std::move(made)) {
      if (from == to) return;
      const dnnl::reorder::primitive_desc descriptor{state.engine(), from, state.engine(), to, attributes()};
      reorder.emplace(label, state, descriptor, dnnl::reorder{descriptor},
                      std::initializer_list<Primitive::Argument>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
      state.reserve_copy(std::max(from.get_size(), to.get_size()));
    }

    /// The kernel in the primitive's layout.
    [[nodiscard]] const T* chosen_layout(State& state, const T* kernel) {
      if (!reorder) return kernel;
      T* const copy = static_cast<T*>(state.copy());
      reorder->execute(state, {kernel, copy});
      return copy;
    }

    Primitive primitive;
    std::optional<Primitive> reorder;
  };

  [[nodiscard]] static Dims kernel_dims() {
    if constexpr (G::groups == 1) return {Dim(G::filters), Dim(G::channels), Dim(G::window), Dim(G::window)};
    return {Dim(G::groups), Dim(G::group_filters), Dim(G::group_channels), Dim(G::window), Dim(G::window)};
  }
  [[nodiscard]] static Descriptor plain_kernel() {
    return tensor(kernel_dims(), G::groups == 1 ? Tag::hwio : Tag::hwigo);
  }

  [[nodiscard]] static Convolution convolution(std::size_t rows) {
    return {.src = tensor({Dim(rows), Dim(G::channels), Dim(G::height), Dim(G::width)}, Tag::nhwc),
            .weights = tensor(kernel_dims(), Tag::any),
            .bias = tensor({Dim(G::filters)}, Tag::x),
            .dst = tensor({Dim(rows), Dim(G::filters), Dim(G::output_height), Dim(G::output_width)}, Tag::nhwc),
            .strides = {Dim(G::stride), Dim(G::stride)},
            .before = {Dim(G::pad_top), Dim(G::pad_left)},
            .after = {Dim(G::pad_bottom), Dim(G::pad_right)}};
  }

  Plans<Plan> forward_;
  Plans<Plan> kernel_gradient_;
  Plans<Plan> input_gradient_;
  [[no_unique_address]] Elementwise<typename G::Activation, T> activation_;
};

}  // namespace dist::nn::onednn
