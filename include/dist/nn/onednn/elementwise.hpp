#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <dist/core/tensor.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/onednn/descriptors.hpp>
#include <dist/nn/onednn/primitive.hpp>
#include <dist/nn/plans.hpp>
#include <dist/nn/reference/elementwise.hpp>
#include <dist/nn/reference/vectors.hpp>

namespace dist::nn::onednn {

/// Functions whose loops the compiler does not vectorise, by oneDNN; by plain loops where a number is not finite, which oneDNN
/// may turn into a finite one.
template <class Function, class T>
class EltwisePrimitives : reference::Elementwise<Function, T> {
  using Loops = reference::Elementwise<Function, T>;

 public:
  void forward(State& state, TensorView<const T> x, TensorView<T> y) {
    if (!reference::are_finite(x.data(), x.size())) return Loops::forward(state, x, y);
    Primitive& primitive = forward_.for_rows(x.size(), [&] {
      return translated(forward_label, [&] {
        const Descriptor values = tensor({Dim(x.size())}, Tag::x);
        const auto descriptor = onednn::forward<Function>(state.engine(), values, NameOf<Function>::algorithm);
        return Primitive{forward_label,
                         state,
                         descriptor,
                         dnnl::eltwise_forward{descriptor},
                         {{DNNL_ARG_SRC, values}, {DNNL_ARG_DST, values}}};
      });
    });
    primitive.execute(state, {x.data(), y.data()});
  }

  void input_gradient(State& state, TensorView<const T> value, TensorView<T> dy, TensorView<T> dx) {
    if (!reference::are_finite(value.data(), value.size()) || !reference::are_finite(dy.data(), dy.size()))
      return Loops::input_gradient(state, value, dy, dx);
    Primitive& primitive = backward_.for_rows(value.size(), [&] {
      return translated(backward_label, [&] {
        const Descriptor values = tensor({Dim(value.size())}, Tag::x);
        const auto descriptor = onednn::backward<Function>(state.engine(), values);
        return Primitive{backward_label,
                         state,
                         descriptor,
                         dnnl::eltwise_backward{descriptor},
                         {{HasGradientOfOutput<Function> ? DNNL_ARG_DST : DNNL_ARG_SRC, values},
                          {DNNL_ARG_DIFF_DST, values},
                          {DNNL_ARG_DIFF_SRC, values}}};
      });
    });
    primitive.execute(state, {value.data(), dy.data(), dx.data()});
  }

 private:
  using Dim = dnnl::memory::dim;
  [[nodiscard]] static std::string describe() { return "a batch of numbers"; }
  static constexpr Label forward_label{"an activation", &describe};
  static constexpr Label backward_label{"the gradient of an activation", &describe};

  Plans<Primitive> forward_;
  Plans<Primitive> backward_;
};

/// y = Function(x), element by element, also in place; by plain loops where oneDNN has no name for the function.
template <class Function, class T>
using Elementwise =
    std::conditional_t<NameOf<Function>::is_known, EltwisePrimitives<Function, T>, reference::Elementwise<Function, T>>;

}  // namespace dist::nn::onednn
