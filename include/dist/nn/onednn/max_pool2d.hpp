#pragma once

#include <cstddef>
#include <utility>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/onednn/descriptors.hpp>
#include <dist/nn/onednn/primitive.hpp>
#include <dist/nn/plans.hpp>

namespace dist::nn::onednn {

/// oneDNN's maximum pooling. Keeps where the maxima were, from `forward` to `input_gradient`.
template <class Geometry, class T>
class MaxPool2D {
 public:
  void forward(State& state, TensorView<const T> x, TensorView<T> y) {
    Plan& plan = plan_for(state, x.rows());
    plan.forward.execute(state, {x.data(), y.data(), plan.places.data()});
  }

  void input_gradient(State& state, TensorView<const T> x, TensorView<const T> dy, TensorView<T> dx) {
    Plan& plan = plan_for(state, x.rows());
    plan.backward.execute(state, {dy.data(), dx.data(), plan.places.data()});
  }

 private:
  using G = Geometry;
  using Dim = dnnl::memory::dim;
  static constexpr Label forward_label{"the pooling of nn::MaxPool2D", &Geometry::describe};
  static constexpr Label backward_label{"the input gradient of nn::MaxPool2D", &Geometry::describe};

  struct Plan {
    Primitive forward;
    Primitive backward;
    AlignedBuffer<std::byte> places;
  };

  [[nodiscard]] Plan& plan_for(State& state, std::size_t rows) {
    return plans_.for_rows(rows, [&] {
      const Pooling tensors{
          .src = tensor({Dim(rows), Dim(G::channels), Dim(G::height), Dim(G::width)}, Tag::nhwc),
          .dst = tensor({Dim(rows), Dim(G::channels), Dim(G::output_height), Dim(G::output_width)}, Tag::nhwc),
          .strides = {Dim(G::stride), Dim(G::stride)},
          .window = {Dim(G::window), Dim(G::window)}};
      const auto forward = translated(forward_label, [&] { return onednn::forward(state.engine(), tensors); });
      const auto places = forward.workspace_desc();
      return Plan{
          translated(forward_label,
                     [&] {
                       return Primitive{
                           forward_label,
                           state,
                           forward,
                           dnnl::pooling_forward{forward},
                           {{DNNL_ARG_SRC, tensors.src}, {DNNL_ARG_DST, tensors.dst}, {DNNL_ARG_WORKSPACE, places}}};
                     }),
          translated(
              backward_label,
              [&] {
                const auto backward = onednn::backward(state.engine(), tensors);
                return Primitive{
                    backward_label,
                    state,
                    backward,
                    dnnl::pooling_backward{backward},
                    {{DNNL_ARG_DIFF_DST, tensors.dst}, {DNNL_ARG_DIFF_SRC, tensors.src}, {DNNL_ARG_WORKSPACE, places}}};
              }),
          AlignedBuffer<std::byte>(places.get_size())};
    });
  }

  Plans<Plan> plans_;
};

}  // namespace dist::nn::onednn
