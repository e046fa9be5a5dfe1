#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>

#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/kernels/dense_bias_gradient.hpp>
#include <dist/nn/onednn/api.hpp>
#include <dist/nn/onednn/elementwise.hpp>
#include <dist/nn/onednn/state.hpp>
#include <dist/nn/reference/windows.hpp>

namespace dist::nn::onednn {

/// Whether Conv2DProducts takes less time than oneDNN's convolution: where padding is a large part of the windows, or few
/// pixels share the cost of copying the kernel into the layout of the primitive. Forward and backward take 0.16, 0.38
/// and 0.87 of the bare primitive's time for images of 1, 4 and 9 pixels (benchmarks/layers.cpp, oneDNN 2.6, AVX-512), and
/// 1.1 of it for 16. With windows of one pixel there is no padding, and from 4 pixels on the primitive is as fast or faster.
template <class Geometry>
[[nodiscard]] constexpr bool is_faster_by_products() {
  constexpr std::size_t most_pixels = Geometry::window > 1 ? 9 : 1;
  return Geometry::groups == 1 && Geometry::windows_reach_image &&
         Geometry::output_height * Geometry::output_width <= most_pixels;
}

/// A convolution as products of matrices: for each pixel of the output and each row of its window, the pixels of that row
/// which lie in the image, of all images of the batch, times their part of the kernel. Pixels are contiguous in an image
/// and taps in the kernel, so nothing is copied, and nothing is multiplied by padding.
template <class Geometry, class T>
class Conv2DProducts {
 public:
  void forward(State& state, TensorView<const T> x, TensorView<const T> kernel, TensorView<const T> bias,
               TensorView<T> y) {
    for (std::size_t pixel = 0; pixel < x.rows() * output_pixels; ++pixel)
      std::copy_n(bias.data(), G::filters, y.data() + pixel * G::filters);
    for_each_row([&](std::size_t output, std::size_t input, std::size_t weights, std::size_t inputs) {
      add_product({x.data() + input, input_size}, {kernel.data() + weights, G::filters}, y.data() + output, output_size,
                  {x.rows(), inputs, G::filters});
    });
    if constexpr (!std::same_as<typename G::Activation, Linear>) activation_.forward(state, y, y);
  }

  void parameter_gradients(State&, TensorView<const T> x, TensorView<const T> dy, TensorView<T> kernel_gradient,
                           TensorView<T> bias_gradient) {
    std::fill_n(kernel_gradient.data(), kernel_gradient.size(), T{0});
    for_each_row([&](std::size_t output, std::size_t input, std::size_t weights, std::size_t inputs) {
      add_product({x.data() + input, input_size, 'T'}, {dy.data() + output, output_size},
                  kernel_gradient.data() + weights, G::filters, {inputs, x.rows(), G::filters});
    });
    const kernels::DenseBatch<T> batch{nullptr, dy.data(), dy.rows() * output_pixels};
    kernels::dense_bias_gradient<G::filters>(std::span{&batch, 1}, bias_gradient.data());
  }

  void input_gradient(State&, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    std::fill_n(dx.data(), dx.size(), T{0});
    for_each_row([&](std::size_t output, std::size_t input, std::size_t weights, std::size_t inputs) {
      add_product({dy.data() + output, output_size}, {kernel.data() + weights, G::filters, 'T'}, dx.data() + input,
                  input_size, {dy.rows(), G::filters, inputs});
    });
  }

 private:
  using G = Geometry;
  static constexpr Label label{"a product of nn::Conv2D", &Geometry::describe};
  static constexpr std::size_t output_pixels = G::output_height * G::output_width;
  /// Numbers of an image, before and after.
  static constexpr std::size_t input_size = G::height * G::width * G::channels;
  static constexpr std::size_t output_size = output_pixels * G::filters;

  /// A factor, row-major: where it starts, the distance of its rows in memory, and 'T' if its transpose is meant.
  struct Factor {
    const T* data = nullptr;
    std::size_t stride = 0;
    char transposed = 'N';
  };
  /// The product is [rows, columns], and the factors share `inner`.
  struct Extents {
    std::size_t rows;
    std::size_t inner;
    std::size_t columns;
  };

  /// Calls `visit(output, input, weights, inputs)` for each pixel of the output and each row of its window: where in an
  /// image of the output the pixel starts, where in an image of the input those pixels of the row start that are not
  /// padding, where the kernel for them starts, and how many numbers of the input they are.
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

  static void add_product(Factor a, Factor b, T* sum, std::size_t stride, Extents extents) {
    const auto dim = [](std::size_t extent) { return static_cast<dnnl_dim_t>(extent); };
    const dnnl_status_t status =
        dnnl_sgemm(a.transposed, b.transposed, dim(extents.rows), dim(extents.columns), dim(extents.inner), 1.0f,
                   a.data, dim(a.stride), b.data, dim(b.stride), 1.0f, sum, dim(stride));
    if (status != dnnl_success) throw OneDnnError(label.primitive, label.geometry(), status, "could not compute it");
  }

  [[no_unique_address]] Elementwise<typename G::Activation, T> activation_;
};

}  // namespace dist::nn::onednn
