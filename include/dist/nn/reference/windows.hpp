#pragma once

#include <cstddef>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/reference/vectors.hpp>

namespace dist::nn::reference {

/// Calls `visit(output, input, tap)` for all pairs of pixels that a convolution connects: pixel indices (row * width +
/// column), and the index in the window. Skips padding.
template <class Geometry, class Visit>
void for_each_tap(Visit&& visit) {
  using G = Geometry;
  for (std::size_t row = 0; row < G::output_height; ++row)
    for (std::size_t column = 0; column < G::output_width; ++column)
      for (std::size_t down = 0; down < G::window_height; ++down)
        for (std::size_t right = 0; right < G::window; ++right) {
          // Above and left of the image these wrap around, out of range.
          const std::size_t in_row = row * G::stride + down - G::pad_top;
          const std::size_t in_column = column * G::stride + right - G::pad_left;
          if (in_row < G::height && in_column < G::width)
            visit(row * G::output_width + column, in_row * G::width + in_column, down * G::window + right);
        }
}

/// Returns the rows, or columns, of window `output` inside the image.
template <class Geometry>
[[nodiscard]] DIST_HD constexpr IndexRange inside(std::size_t output, std::size_t padding, std::size_t extent) {
  const std::size_t start = output * Geometry::stride;
  const std::size_t end = start + Geometry::window - padding;
  return {start > padding ? start - padding : 0, end < extent ? end : extent};
}

/// Returns the windows, of `outputs`, that cover row or column `at` of the image.
template <class Geometry>
[[nodiscard]] DIST_HD constexpr IndexRange covering(std::size_t at, std::size_t padding, std::size_t outputs) {
  const std::size_t place = at + padding;
  const std::size_t end = place / Geometry::stride + 1;
  return {place < Geometry::window ? 0 : (place - Geometry::window) / Geometry::stride + 1,
          end < outputs ? end : outputs};
}

/// Calls `visit(output, rows, columns)` for every window: its output pixel, and what it covers inside the image.
template <class Geometry, class Visit>
void for_each_window(Visit&& visit) {
  using G = Geometry;
  for (std::size_t row = 0; row < G::output_height; ++row)
    for (std::size_t column = 0; column < G::output_width; ++column)
      visit(row * G::output_width + column, inside<G>(row, G::pad_top, G::height),
            inside<G>(column, G::pad_left, G::width));
}

/// y = activation(x correlated with kernel + bias). Inner loops run over a group's filters, contiguous in memory.
template <class Geometry, class T>
class Conv2D {
  static constexpr std::size_t channels = Geometry::channels;
  static constexpr std::size_t filters = Geometry::filters;
  static constexpr std::size_t input_size = Geometry::height * Geometry::width * channels;
  static constexpr std::size_t output_pixels = Geometry::output_height * Geometry::output_width;
  static constexpr std::size_t output_size = output_pixels * filters;
  static constexpr std::size_t group_channels = Geometry::group_channels;
  static constexpr std::size_t group_filters = Geometry::group_filters;

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<const T> kernel, [[maybe_unused]] TensorView<const T> bias,
               TensorView<T> y) {
    for (std::size_t image = 0; image < x.rows(); ++image) {
      const T* const in = x.data() + image * input_size;
      T* const out = y.data() + image * output_size;
      if constexpr (Geometry::has_bias)
        for (std::size_t pixel = 0; pixel < output_pixels; ++pixel)
          std::copy_n(bias.data(), filters, out + pixel * filters);
      else
        std::fill_n(out, output_size, T{0});
      for_each_tap<Geometry>([&](std::size_t to, std::size_t from, std::size_t tap) {
        for (std::size_t channel = 0; channel < channels; ++channel)
          add_scaled(in[from * channels + channel], kernel.data() + weights_of(tap, channel),
                     out + to * filters + first_filter(channel), group_filters);
      });
      for (std::size_t i = 0; i < output_size; ++i) out[i] = Geometry::Activation::apply(out[i]);
    }
  }

  template <class State>
  void parameter_gradients(State&, TensorView<const T> x, TensorView<const T> dy, TensorView<T> kernel_gradient,
                           [[maybe_unused]] TensorView<T> bias_gradient) {
    std::fill_n(kernel_gradient.data(), kernel_gradient.size(), T{0});
    if constexpr (Geometry::has_bias) std::fill_n(bias_gradient.data(), filters, T{0});
    for (std::size_t image = 0; image < x.rows(); ++image) {
      const T* const in = x.data() + image * input_size;
      const T* const out = dy.data() + image * output_size;
      for_each_tap<Geometry>([&](std::size_t to, std::size_t from, std::size_t tap) {
        for (std::size_t channel = 0; channel < channels; ++channel)
          add_scaled(in[from * channels + channel], out + to * filters + first_filter(channel),
                     kernel_gradient.data() + weights_of(tap, channel), group_filters);
      });
      if constexpr (Geometry::has_bias)
        for (std::size_t pixel = 0; pixel < output_pixels; ++pixel)
          add(out + pixel * filters, bias_gradient.data(), filters);
    }
  }

  template <class State>
  void input_gradient(State&, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    std::fill_n(dx.data(), dx.size(), T{0});
    for (std::size_t image = 0; image < dy.rows(); ++image) {
      const T* const out = dy.data() + image * output_size;
      T* const in = dx.data() + image * input_size;
      for_each_tap<Geometry>([&](std::size_t to, std::size_t from, std::size_t tap) {
        for (std::size_t channel = 0; channel < channels; ++channel)
          in[from * channels + channel] +=
              dot(out + to * filters + first_filter(channel), kernel.data() + weights_of(tap, channel), group_filters);
      });
    }
  }

 private:
  /// The first filter of a channel's group, and the offset of its weights for a tap.
  [[nodiscard]] static constexpr std::size_t first_filter(std::size_t channel) {
    return channel / group_channels * group_filters;
  }
  [[nodiscard]] static constexpr std::size_t weights_of(std::size_t tap, std::size_t channel) {
    return (tap * group_channels + channel % group_channels) * filters + first_filter(channel);
  }
};

/// Each window's maximum, per channel; NaN if it contains one. Stores nothing: the gradient searches the maxima again.
/// Limited by memory bandwidth, so other CPU back ends use it: oneDNN's pooling ignores NaN and -infinity.
template <class Geometry, class T>
class MaxPool2D {
  using G = Geometry;
  static constexpr std::size_t channels = G::channels;
  static constexpr std::size_t input_size = G::height * G::width * channels;
  static constexpr std::size_t output_size = G::output_height * G::output_width * channels;

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    for (std::size_t image = 0; image < x.rows(); ++image)
      for_each_window<G>([&](std::size_t output, IndexRange rows, IndexRange columns) {
        take_maxima(x.data() + image * input_size, rows, columns, y.data() + image * output_size + output * channels);
      });
  }

  template <class State>
  void input_gradient(State&, TensorView<const T> x, TensorView<const T> dy, TensorView<T> dx) {
    std::fill_n(dx.data(), dx.size(), T{0});
    for (std::size_t image = 0; image < x.rows(); ++image)
      for_each_window<G>([&](std::size_t output, IndexRange rows, IndexRange columns) {
        T maxima[channels];
        T left[channels];
        take_maxima(x.data() + image * input_size, rows, columns, maxima);
        std::copy_n(dy.data() + image * output_size + output * channels, channels, left);
        for_each_pixel(rows, columns, [&](std::size_t pixel) {
          const std::size_t at = image * input_size + pixel;
          give_to_greatest(x.data() + at, maxima, left, dx.data() + at, channels);
        });
      });
  }

 private:
  static void take_maxima(const T* image, IndexRange rows, IndexRange columns, T* maxima) {
    std::copy_n(image + (rows.begin * G::width + columns.begin) * channels, channels, maxima);
    for_each_pixel(rows, columns, [&](std::size_t pixel) { take_greater(image + pixel, maxima, channels); });
  }
  /// Calls `visit` with each pixel's offset in the image.
  template <class Visit>
  static void for_each_pixel(IndexRange rows, IndexRange columns, Visit&& visit) {
    for (std::size_t row = rows.begin; row < rows.end; ++row)
      for (std::size_t column = columns.begin; column < columns.end; ++column)
        visit((row * G::width + column) * channels);
  }
};

/// Each window's mean, per channel. Limited by memory bandwidth, so other CPU back ends use it.
template <class Geometry, class T>
class AveragePool2D {
  using G = Geometry;
  static constexpr std::size_t input_size = G::height * G::width * G::channels;
  static constexpr std::size_t output_size = G::output_height * G::output_width * G::channels;

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    std::fill_n(y.data(), y.size(), T{0});
    for_each_share(x.rows(), [&](std::size_t to, std::size_t from, T share) {
      add_scaled(share, x.data() + from, y.data() + to, G::channels);
    });
  }

  template <class State>
  void input_gradient(State&, TensorView<const T>, TensorView<const T> dy, TensorView<T> dx) {
    std::fill_n(dx.data(), dx.size(), T{0});
    for_each_share(dy.rows(), [&](std::size_t to, std::size_t from, T share) {
      add_scaled(share, dy.data() + to, dx.data() + from, G::channels);
    });
  }

 private:
  /// Calls `visit(output, input, share)` with two pixels' offsets, and the input's weight in the output.
  template <class Visit>
  static void for_each_share(std::size_t images, Visit&& visit) {
    for (std::size_t image = 0; image < images; ++image)
      for_each_window<G>([&](std::size_t output, IndexRange rows, IndexRange columns) {
        const T share = T{1} / static_cast<T>(G::counted(rows.size(), columns.size()));
        for (std::size_t row = rows.begin; row < rows.end; ++row)
          for (std::size_t column = columns.begin; column < columns.end; ++column)
            visit(image * output_size + output * G::channels,
                  image * input_size + (row * G::width + column) * G::channels, share);
      });
  }
};

/// Each channel's mean. Limited by memory bandwidth, so other CPU back ends use it.
template <class Image, class T>
class GlobalAveragePool2D {
  static constexpr std::size_t channels = Image::channels;
  static constexpr T share = T{1} / static_cast<T>(Image::pixels);

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    std::fill_n(y.data(), y.size(), T{0});
    const T* from = x.data();
    for (std::size_t image = 0; image < x.rows(); ++image) {
      T* const mean = y.data() + image * channels;
      for (std::size_t pixel = 0; pixel < Image::pixels; ++pixel, from += channels) add(from, mean, channels);
      for (std::size_t c = 0; c < channels; ++c) mean[c] *= share;
    }
  }

  template <class State>
  void input_gradient(State&, TensorView<const T>, TensorView<const T> dy, TensorView<T> dx) {
    T* to = dx.data();
    for (std::size_t image = 0; image < dy.rows(); ++image) {
      const T* const gradient = dy.data() + image * channels;
      for (std::size_t pixel = 0; pixel < Image::pixels; ++pixel, to += channels)
        for (std::size_t c = 0; c < channels; ++c) to[c] = gradient[c] * share;
    }
  }
};

}  // namespace dist::nn::reference
