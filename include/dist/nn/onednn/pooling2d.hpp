#pragma once

#include <cstddef>
#include <utility>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/onednn/descriptors.hpp>
#include <dist/nn/onednn/primitive.hpp>
#include <dist/nn/plans.hpp>

namespace dist::nn::onednn {

/// oneDNN's pooling. `Kind` has its `algorithm`, the names of its primitives for errors, `forward_name` and `backward_name`,
/// and whether it `has_places`: where the maxima were, which is kept from `forward` to `input_gradient`.
template <class Geometry, class T, class Kind>
class Pooling2D {
 public:
  void forward(State& state, TensorView<const T> x, TensorView<T> y) {
    Plan& plan = plan_for(state, x.rows());
    if constexpr (Kind::has_places) {
      plan.forward.execute(state, {x.data(), y.data(), plan.places.data()});
    } else {
      plan.forward.execute(state, {x.data(), y.data()});
    }
  }

  void input_gradient(State& state, TensorView<const T> x, TensorView<const T> dy, TensorView<T> dx) {
    Plan& plan = plan_for(state, x.rows());
    if constexpr (Kind::has_places) {
      plan.backward.execute(state, {dy.data(), dx.data(), plan.places.data()});
    } else {
      plan.backward.execute(state, {dy.data(), dx.data()});
    }
  }

 private:
  using G = Geometry;
  using Dim = dnnl::memory::dim;
  static constexpr Label forward_label{Kind::forward_name, &Geometry::describe};
  static constexpr Label backward_label{Kind::backward_name, &Geometry::describe};

  struct Plan {
    Primitive forward;
    Primitive backward;
    AlignedBuffer<std::byte> places;
  };

  [[nodiscard]] static Primitive primitive(const Label& label, State& state, const auto& descriptor,
                                           const dnnl::primitive& made, const Primitive::Argument& from,
                                           const Primitive::Argument& to, const Descriptor& places) {
    if constexpr (Kind::has_places)
      return Primitive{label, state, descriptor, made, {from, to, {DNNL_ARG_WORKSPACE, places}}};
    return Primitive{label, state, descriptor, made, {from, to}};
  }

  [[nodiscard]] Plan& plan_for(State& state, std::size_t rows) {
    return plans_.for_rows(rows, [&] {
      const Pooling tensors{
          .algorithm = Kind::algorithm,
          .src = tensor({Dim(rows), Dim(G::channels), Dim(G::height), Dim(G::width)}, Tag::nhwc),
          .dst = tensor({Dim(rows), Dim(G::channels), Dim(G::output_height), Dim(G::output_width)}, Tag::nhwc),
          .strides = {Dim(G::stride), Dim(G::stride)},
          .window = {Dim(G::window), Dim(G::window)},
          .before = {Dim(G::pad_top), Dim(G::pad_left)},
          .after = {Dim(G::pad_bottom), Dim(G::pad_right)}};
      const auto forward = translated(forward_label, [&] { return onednn::forward(state.engine(), tensors); });
      const auto places = forward.workspace_desc();
      return Plan{translated(forward_label,
                             [&] {
                               return primitive(forward_label, state, forward, dnnl::pooling_forward{forward},
                                                {DNNL_ARG_SRC, tensors.src}, {DNNL_ARG_DST, tensors.dst}, places);
                             }),
                  translated(backward_label,
                             [&] {
                               const auto backward = onednn::backward(state.engine(), tensors);
                               return primitive(backward_label, state, backward, dnnl::pooling_backward{backward},
                                                {DNNL_ARG_DIFF_DST, tensors.dst}, {DNNL_ARG_DIFF_SRC, tensors.src},
                                                places);
                             }),
                  AlignedBuffer<std::byte>(places.get_size())};
    });
  }

  Plans<Plan> plans_;
};

}  // namespace dist::nn::onednn
