#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/kernels/dense_bias_gradient.hpp>
#include <dist/nn/kernels/dense_input_gradient.hpp>
#include <dist/nn/kernels/dense_kernel_gradient.hpp>
#include <dist/nn/onednn/descriptors.hpp>
#include <dist/nn/onednn/elementwise.hpp>
#include <dist/nn/onednn/primitive.hpp>
#include <dist/nn/plans.hpp>

namespace dist::nn::onednn {

/// The forward product by oneDNN, on plain row-major memory; the gradients by kernels of our own. oneDNN's gradient of
/// the input is slow on [in, out] kernels, or needs a reordered copy of them in every step (inner_product), and it
/// cannot apply the gradient of the activation before to what it computes.
template <class Geometry, class T>
class Dense {
 public:
  void forward(State& state, TensorView<const T> x, TensorView<const T> kernel, TensorView<const T> bias,
               TensorView<T> y) {
    Product& product = forward_.for_rows(x.rows(), [&] { return Product{state, dim(x.rows())}; });
    product.first.execute(state, {x.data(), kernel.data(), y.data(), bias.data()});
    if constexpr (in_halves)
      product.second->execute(state, {x.data() + half, kernel.data() + half * Geometry::units, y.data()});
    if constexpr (!std::same_as<Activation, Linear>) activation_.forward(state, y, y);
  }

  void parameter_gradients(State& state, TensorView<const T> x, TensorView<const T> dy, TensorView<T> kernel_gradient,
                           TensorView<T> bias_gradient) {
    const kernels::DenseBatch<T> batch{x.data(), dy.data(), x.rows()};
    T* const gradient = kernel_gradient.data();
    kernels::dense_kernel_gradient<Geometry::inputs, Geometry::units>(
        std::span{&batch, 1}, IndexRange{0, Geometry::inputs},
        [gradient](std::size_t first, std::span<const T> sums)
            DIST_INLINE_LAMBDA { std::copy_n(sums.data(), sums.size(), gradient + first); });
    this->bias_gradient(state, dy, bias_gradient);
  }

  void bias_gradient(State&, TensorView<const T> dy, TensorView<T> gradient) {
    const kernels::DenseBatch<T> batch{nullptr, dy.data(), dy.rows()};
    kernels::dense_bias_gradient<Geometry::units>(std::span{&batch, 1}, gradient.data());
  }

  void input_gradient(State& state, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    input_gradient<Linear>(state, dy, kernel, {}, dx);
  }
  /// `x` is the layer's input, which the activation `Before` made.
  template <class Before>
  void input_gradient(State&, TensorView<const T> dy, TensorView<const T> kernel, TensorView<const T> x,
                      TensorView<T> dx) {
    kernels::dense_input_gradient<Geometry::inputs, Geometry::units, Before>(dy.data(), kernel.data(), x.data(),
                                                                             dx.data(), dy.rows());
  }

 private:
  using Dim = dnnl::memory::dim;
  using Activation = typename Geometry::Activation;
  static constexpr Label label{"the matmul of nn::Dense", &Geometry::describe};

  /// Long rows are multiplied in two halves, the second added to the first: for rows with gaps between them, as those
  /// of halves are, oneDNN 2.6 takes another path, which is 8 % faster on 64 x 21632 by 21632 x 128.
  static constexpr bool in_halves = Geometry::inputs >= 4096;
  static constexpr std::size_t half = in_halves ? Geometry::inputs / 2 : Geometry::inputs;

  [[nodiscard]] static constexpr Dim dim(std::size_t extent) { return static_cast<Dim>(extent); }

  struct Product {
    Product(State& state, Dim rows) : first(part(state, rows, half, true, attributes())) {
      if constexpr (in_halves)
        second.emplace(part(state, rows, Geometry::inputs - half, false, attributes(Result::is_added)));
    }
    Primitive first;
    std::optional<Primitive> second;
  };

  /// The product of so many columns of x and as many rows of the kernel: arguments in the order x, kernel, y, and bias
  /// where there is one.
  [[nodiscard]] static Primitive part(State& state, Dim rows, std::size_t columns, bool has_bias,
                                      const dnnl::primitive_attr& attributes) {
    constexpr Dim inputs = dim(Geometry::inputs);
    constexpr Dim units = dim(Geometry::units);
    return translated(label, [&] {
      const Descriptor x{{rows, dim(columns)}, dnnl::memory::data_type::f32, Dims{inputs, 1}};
      const Descriptor kernel = tensor({dim(columns), units}, Tag::ab);
      const Descriptor y = tensor({rows, units}, Tag::ab);
      const Descriptor bias = has_bias ? tensor({1, units}, Tag::ab) : Descriptor{};
      const auto descriptor = matmul(state.engine(), x, kernel, bias, y, attributes);
      const dnnl::matmul primitive{descriptor};
      if (!has_bias)
        return Primitive{
            label, state, descriptor, primitive, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, kernel}, {DNNL_ARG_DST, y}}};
      return Primitive{label,
                       state,
                       descriptor,
                       primitive,
                       {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, kernel}, {DNNL_ARG_DST, y}, {DNNL_ARG_BIAS, bias}}};
    });
  }

  Plans<Product> forward_;
  [[no_unique_address]] Elementwise<Activation, T> activation_;
};

}  // namespace dist::nn::onednn
