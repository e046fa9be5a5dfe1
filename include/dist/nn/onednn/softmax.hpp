#pragma once

#include <cstddef>
#include <string>

#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/onednn/descriptors.hpp>
#include <dist/nn/onednn/primitive.hpp>
#include <dist/nn/plans.hpp>
#include <dist/nn/row.hpp>
#include <dist/nn/softmax.hpp>

namespace dist::nn::onednn {

/// The exponentials by oneDNN, because the compiler's are scalar; the gradient, which has none, by plain loops. By plain
/// loops, too, where a number is NaN or +infinity, which makes its whole row NaN: oneDNN makes 0 of the other elements.
template <std::size_t Classes, class T>
class Softmax {
 public:
  void forward(State& state, TensorView<const T> x, TensorView<T> y) {
    const std::size_t rows = x.size() / Classes;
    if (!are_below_infinity(x)) {
      const nn::detail::SoftmaxOfRow<T> body{x.data(), y.data(), Classes};
      for (std::size_t row = 0; row < rows; ++row) body(nn::detail::ThreadOfRow{Classes}, row);
      return;
    }
    Primitive& primitive = forward_.for_rows(rows, [&] {
      return translated(label, [&] {
        using Dim = dnnl::memory::dim;
        const Descriptor values = tensor({Dim(rows), Dim(Classes)}, Tag::ab);
        const auto descriptor = softmax(state.engine(), values);
        return Primitive{label,
                         state,
                         descriptor,
                         dnnl::softmax_forward{descriptor},
                         {{DNNL_ARG_SRC, values}, {DNNL_ARG_DST, values}}};
      });
    });
    primitive.execute(state, {x.data(), y.data()});
  }
  void input_gradient(State&, TensorView<const T> y, TensorView<const T> dy, TensorView<T> dx) {
    const nn::detail::SoftmaxGradientOfRow<T> body{y.data(), dy.data(), dx.data(), Classes};
    for (std::size_t row = 0; row < y.size() / Classes; ++row) body(nn::detail::ThreadOfRow{Classes}, row);
  }

 private:
  [[nodiscard]] static bool are_below_infinity(TensorView<const T> x) {
    constexpr T infinity = -Max::identity<T>;
    const T* const values = x.data();
    int is_below = 1;
    for (std::size_t i = 0; i < x.size(); ++i) is_below &= static_cast<int>(values[i] < infinity);
    return is_below != 0;
  }
  [[nodiscard]] static std::string describe() { return concat("rows of ", Classes, " classes"); }
  static constexpr Label label{"the softmax of nn::Softmax", &describe};

  Plans<Primitive> forward_;
};

}  // namespace dist::nn::onednn
