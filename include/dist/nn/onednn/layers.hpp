#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/kernels/attention.hpp>
#include <dist/nn/kernels/dense_input_gradient.hpp>
#include <dist/nn/kernels/dense_kernel_gradient.hpp>
#include <dist/nn/onednn/operations.hpp>
#include <dist/nn/reference/layers.hpp>
#include <dist/nn/reference/vectors.hpp>
#include <dist/nn/reference/windows.hpp>
#include <dist/nn/row.hpp>
#include <dist/nn/softmax.hpp>

namespace dist::nn::onednn {

/// Activations by oneDNN, for functions whose loops the compiler does not vectorise. Plain loops compute them if an
/// element is not finite, because oneDNN may make it finite.
template <class Function, class T>
class EltwisePrimitives : reference::Elementwise<Function, T> {
  using Loops = reference::Elementwise<Function, T>;

 public:
  void forward(State& state, TensorView<const T> x, TensorView<T> y) {
    if (!reference::are_finite(x.data(), x.size())) return Loops::forward(state, x, y);
    activate(state, forward_, eltwise_of<Function>, x.size(), x.data(), y.data());
  }

  void input_gradient(State& state, TensorView<const T> value, TensorView<T> dy, TensorView<T> dx) {
    if (!reference::are_finite(value.data(), value.size()) || !reference::are_finite(dy.data(), dy.size()))
      return Loops::input_gradient(state, value, dy, dx);
    compute_activation_gradient(state, backward_, eltwise_of<Function>, value.size(), value.data(), dy.data(),
                                dx.data());
  }

 private:
  Compiled forward_;
  Compiled backward_;
};

/// y = Function(x) for each element, also in place; by plain loops if oneDNN lacks the function.
template <class Function, class T>
using Elementwise = std::conditional_t<eltwise_of<Function> != Eltwise::none, EltwisePrimitives<Function, T>,
                                       reference::Elementwise<Function, T>>;

/// The forward product by oneDNN on plain row-major memory, the input gradient by this library's kernel: oneDNN's is
/// slow on [in, out] kernels, or reorders them in each step (inner_product), and cannot apply the preceding
/// activation's gradient. oneDNN computes the kernel gradient of many units, or of a dy that exceeds a core's caches: 0.65
/// to 0.75 of the multiply-add limit for 1,536 and 50,257 units, where blocks of whole rows had 0.02 to 0.07 (AVX2).
template <class Geometry, class T>
class Dense {
 public:
  void forward(State& state, TensorView<const T> x, TensorView<const T> kernel, TensorView<const T> bias,
               TensorView<T> y) {
    multiply(state, forward_, sizes, x.rows(), x.data(), kernel.data(), bias.data(), y.data());
    if constexpr (!std::same_as<Activation, Linear>) activation_.forward(state, y, y);
  }

  void parameter_gradients(State& state, TensorView<const T> x, TensorView<const T> dy, TensorView<T> kernel_gradient,
                           TensorView<T> bias_gradient) {
    if (is_wide || dy.size() * sizeof(T) > most_cached_bytes) {
      compute_kernel_gradient(state, kernel_gradient_, sizes, x.rows(), x.data(), dy.data(), kernel_gradient.data());
    } else if constexpr (!is_wide) {
      const kernels::DenseBatch<T> batch{x.data(), dy.data(), x.rows()};
      T* const gradient = kernel_gradient.data();
      kernels::dense_kernel_gradient<Geometry::inputs, Geometry::units>(
          std::span{&batch, 1}, IndexRange{0, Geometry::inputs},
          [gradient](std::size_t first, std::span<const T> sums)
              DIST_INLINE_LAMBDA { std::copy_n(sums.data(), sums.size(), gradient + first); });
    }
    if constexpr (Geometry::has_bias) this->bias_gradient(state, dy, bias_gradient);
  }

  void bias_gradient(State&, TensorView<const T> dy, TensorView<T> gradient) {
    const kernels::DenseBatch<T> batch{nullptr, dy.data(), dy.rows()};
    kernels::dense_bias_gradient<Geometry::units>(std::span{&batch, 1}, gradient.data());
  }

  void input_gradient(State& state, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    input_gradient<Linear>(state, dy, kernel, {}, dx);
  }
  /// `x` is the layer's input, the output of the activation `Before`.
  template <class Before>
  void input_gradient(State&, TensorView<const T> dy, TensorView<const T> kernel, TensorView<const T> x,
                      TensorView<T> dx) {
    kernels::dense_input_gradient<Geometry::inputs, Geometry::units, Before>(dy.data(), kernel.data(), x.data(),
                                                                             dx.data(), dy.rows());
  }

 private:
  using Activation = typename Geometry::Activation;
  static constexpr DenseSizes sizes{Geometry::inputs, Geometry::units, Geometry::has_bias, &Geometry::describe};
  /// True if blocks of the kernel's gradient have several panels of units.
  static constexpr bool is_wide = kernels::DenseKernelGradientBlock<Geometry::units, T>::most_units < Geometry::units;
  /// The own kernel reads dy for each 16 inputs.
  static constexpr std::size_t most_cached_bytes = std::size_t{1} << 19;

  Compiled forward_;
  Compiled kernel_gradient_;
  [[no_unique_address]] Elementwise<Activation, T> activation_;
};

/// A dense layer whose factors are BFloat16, by oneDNN.
template <class Geometry, class T>
class ShortDense {
  using Half = TensorView<const BFloat16>;

 public:
  void forward(State& state, Half x, Half kernel, TensorView<const T> bias, TensorView<T> y) {
    multiply(state, forward_, sizes, x.rows(), x.data(), kernel.data(), bias.data(), y.data());
    if constexpr (!std::same_as<typename Geometry::Activation, Linear>) activation_.forward(state, y, y);
  }
  void parameter_gradients(State& state, Half x, Half dy, TensorView<T> kernel_gradient, TensorView<T> bias_gradient) {
    compute_kernel_gradient(state, kernel_gradient_, sizes, x.rows(), x.data(), dy.data(), kernel_gradient.data());
    if constexpr (Geometry::has_bias) compute_bias_gradient(sizes, dy.rows(), dy.data(), bias_gradient.data());
  }
  void input_gradient(State& state, Half dy, Half kernel, TensorView<T> dx) {
    compute_input_gradient(state, input_gradient_, sizes, dy.rows(), dy.data(), kernel.data(), dx.data());
  }

 private:
  static constexpr DenseSizes sizes{Geometry::inputs, Geometry::units, Geometry::has_bias, &Geometry::describe,
                                    Factors::bfloat16};

  Compiled forward_;
  Compiled kernel_gradient_;
  Compiled input_gradient_;
  [[no_unique_address]] Elementwise<typename Geometry::Activation, T> activation_;
};

/// Attention in blocks by this library's kernel. Plain loops compute sequences with numbers that are not finite, which
/// must not affect elements that do not attend to them.
template <class Geometry, class T>
class Attention : reference::Attention<Geometry, T> {
  using Loops = reference::Attention<Geometry, T>;
  using Loops::sizes;

 public:
  void forward(State& state, TensorView<const T> queries, TensorView<const T> keys, TensorView<const T> values,
               TensorView<T> outputs) {
    T* const scratch = state.scratch(kernels::attention_scratch(sizes));
    this->for_each_sequence(queries, keys, values,
                            [&](const AttentionInputs<T>& inputs, std::size_t first, std::size_t, T* log_sums) {
                              if (are_finite(inputs))
                                kernels::attention(sizes, inputs, outputs.data() + first, log_sums, scratch);
                              else
                                Loops::attend(inputs, outputs.data() + first, log_sums);
                            });
  }

  void input_gradients(State& state, TensorView<const T> queries, TensorView<const T> keys, TensorView<const T> values,
                       TensorView<const T> outputs, TensorView<const T> output_gradients, TensorView<T> query_gradients,
                       TensorView<T> key_gradients, TensorView<T> value_gradients) {
    T* const scratch = state.scratch(kernels::attention_scratch(sizes));
    this->for_each_sequence(
        queries, keys, values,
        [&](const AttentionInputs<T>& inputs, std::size_t first, std::size_t first_key, T* log_sums) {
          const AttentionGradients<T> gradients{output_gradients.data() + first, query_gradients.data() + first,
                                                key_gradients.data() + first_key, value_gradients.data() + first_key};
          if (are_finite(inputs) && reference::are_finite(gradients.outputs, sizes.length * sizes.columns()))
            kernels::attention_gradients(sizes, inputs, outputs.data() + first, log_sums, gradients, scratch);
          else
            Loops::compute_gradients(inputs, log_sums, gradients);
        });
  }

 private:
  [[nodiscard]] static bool are_finite(const AttentionInputs<T>& inputs) {
    constexpr std::size_t keys = sizes.length * sizes.key_columns();
    return reference::are_finite(inputs.queries, sizes.length * sizes.columns()) &&
           reference::are_finite(inputs.keys, keys) && reference::are_finite(inputs.values, keys);
  }
};

/// Softmax with oneDNN's exponentials, because the compiler's are scalar. Plain loops compute the gradient, and
/// `forward` if an element is NaN or +infinity, which must make its whole row NaN: oneDNN sets the other elements to
/// 0.
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
    compute_softmax(state, forward_, label, rows, Classes, x.data(), y.data());
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

  Compiled forward_;
};

/// A convolution by oneDNN's primitives. `Factor` is float or BFloat16.
template <class Geometry, class T, class Factor = T>
class Conv2DPrimitives {
  using Factors = TensorView<const Factor>;

 public:
  void forward(State& state, Factors x, Factors kernel, TensorView<const T> bias, TensorView<T> y) {
    convolve(state, forward_, sizes, x.rows(), x.data(), kernel.data(), bias.data(), y.data());
    if constexpr (!std::same_as<typename G::Activation, Linear>) activation_.forward(state, y, y);
  }
  void parameter_gradients(State& state, Factors x, Factors dy, TensorView<T> kernel_gradient,
                           TensorView<T> bias_gradient) {
    compute_kernel_gradient(state, kernel_gradient_, sizes, x.rows(), x.data(), dy.data(), kernel_gradient.data(),
                            bias_gradient.data());
  }
  void input_gradient(State& state, Factors dy, Factors kernel, TensorView<T> dx) {
    compute_input_gradient(state, input_gradient_, sizes, dy.rows(), dy.data(), kernel.data(), dx.data());
  }

 private:
  using G = Geometry;
  static constexpr auto factors = std::same_as<Factor, T> ? onednn::Factors::float32 : onednn::Factors::bfloat16;
  static constexpr Conv2DSizes sizes{G::channels,     G::height,   G::width,         G::filters,   G::output_height,
                                     G::output_width, G::groups,   G::window_height, G::window,    G::stride,
                                     G::pad_top,      G::pad_left, G::pad_bottom,    G::pad_right, G::has_bias,
                                     &G::describe,    factors};

  Compiled forward_;
  Compiled kernel_gradient_;
  Compiled input_gradient_;
  [[no_unique_address]] Elementwise<typename G::Activation, T> activation_;
};

/// True if Conv2DProducts is faster than oneDNN's convolution: padding is a large part of the windows, or few pixels
/// share the cost of reordering the kernel. Forward and backward take 0.16, 0.38, 0.87 and 1.1 of the bare
/// primitive's time for images of 1, 4, 9 and 16 pixels (benchmarks/layers.cpp, oneDNN 2.6, AVX-512). With a window
/// of 1, without padding, the primitive is at least as fast from 4 pixels on.
template <class Geometry>
[[nodiscard]] constexpr bool is_faster_by_products() {
  constexpr std::size_t most_pixels = Geometry::window > 1 ? 9 : 1;
  return Geometry::groups == 1 && Geometry::windows_reach_image &&
         Geometry::output_height * Geometry::output_width <= most_pixels;
}

/// A convolution as matrix products: for each output pixel and window row, the row's pixels inside the image, for all
/// images of the batch, times their part of the kernel. Pixels and taps are contiguous, so no data is copied, and
/// padding costs nothing.
template <class Geometry, class T>
class Conv2DProducts {
 public:
  void forward(State& state, TensorView<const T> x, TensorView<const T> kernel, TensorView<const T> bias,
               TensorView<T> y) {
    if constexpr (G::has_bias)
      for (std::size_t pixel = 0; pixel < x.rows() * output_pixels; ++pixel)
        std::copy_n(bias.data(), G::filters, y.data() + pixel * G::filters);
    else
      std::fill_n(y.data(), y.size(), T{0});
    for_each_row([&](std::size_t output, std::size_t input, std::size_t weights, std::size_t inputs) {
      add_product(label, {x.data() + input, input_size}, {kernel.data() + weights, G::filters}, y.data() + output,
                  output_size, {x.rows(), inputs, G::filters});
    });
    if constexpr (!std::same_as<typename G::Activation, Linear>) activation_.forward(state, y, y);
  }

  void parameter_gradients(State&, TensorView<const T> x, TensorView<const T> dy, TensorView<T> kernel_gradient,
                           TensorView<T> bias_gradient) {
    std::fill_n(kernel_gradient.data(), kernel_gradient.size(), T{0});
    for_each_row([&](std::size_t output, std::size_t input, std::size_t weights, std::size_t inputs) {
      add_product(label, {x.data() + input, input_size, 'T'}, {dy.data() + output, output_size},
                  kernel_gradient.data() + weights, G::filters, {inputs, x.rows(), G::filters});
    });
    if constexpr (G::has_bias) {
      const kernels::DenseBatch<T> batch{nullptr, dy.data(), dy.rows() * output_pixels};
      kernels::dense_bias_gradient<G::filters>(std::span{&batch, 1}, bias_gradient.data());
    }
  }

  void input_gradient(State&, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    std::fill_n(dx.data(), dx.size(), T{0});
    for_each_row([&](std::size_t output, std::size_t input, std::size_t weights, std::size_t inputs) {
      add_product(label, {dy.data() + output, output_size}, {kernel.data() + weights, G::filters, 'T'},
                  dx.data() + input, input_size, {dy.rows(), G::filters, inputs});
    });
  }

 private:
  using G = Geometry;
  static constexpr Label label{"a product of nn::Conv2D", &Geometry::describe};
  static constexpr std::size_t output_pixels = G::output_height * G::output_width;
  /// Elements of an input image, and of an output image.
  static constexpr std::size_t input_size = G::height * G::width * G::channels;
  static constexpr std::size_t output_size = output_pixels * G::filters;

  /// Calls `visit(output, input, weights, inputs)` for each output pixel and window row: the offsets of the pixel in
  /// an output image, of the row's first pixel inside an input image, and of its part of the kernel, and the number
  /// of input elements.
  template <class Visit>
  static void for_each_row(Visit&& visit) {
    reference::for_each_window<G>([&](std::size_t pixel, IndexRange rows, IndexRange columns) {
      const std::size_t top = pixel / G::output_width * G::stride;
      const std::size_t left = pixel % G::output_width * G::stride;
      for (std::size_t row = rows.begin; row < rows.end; ++row) {
        const std::size_t tap = (row + G::pad_top - top) * G::window + columns.begin + G::pad_left - left;
        visit(pixel * G::filters, (row * G::width + columns.begin) * G::channels, tap * G::channels * G::filters,
              columns.size() * G::channels);
      }
    });
  }

  [[no_unique_address]] Elementwise<typename G::Activation, T> activation_;
};

}  // namespace dist::nn::onednn
