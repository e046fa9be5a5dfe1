#pragma once

#include <algorithm>
#include <cstddef>

#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/reference/vectors.hpp>
#include <dist/nn/reference/windows.hpp>

namespace dist::nn::reference {

/// The largest element of each window, per channel; NaN if the window has one. Keeps nothing: the gradient looks for the
/// maxima again. Bound by memory, so other CPU back ends use it too: oneDNN's pooling leaves NaN and -infinity out.
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
  /// Calls `visit` with where the channels of each pixel of a window start in the image.
  template <class Visit>
  static void for_each_pixel(IndexRange rows, IndexRange columns, Visit&& visit) {
    for (std::size_t row = rows.begin; row < rows.end; ++row)
      for (std::size_t column = columns.begin; column < columns.end; ++column)
        visit((row * G::width + column) * channels);
  }
};

/// The mean of the elements of each window that lie in the image, per channel. Bound by memory, so other CPU back ends use
/// it too.
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
  /// Calls `visit(output, input, share)` with where the channels of two pixels start, and the share that the input has in
  /// the output.
  template <class Visit>
  static void for_each_share(std::size_t images, Visit&& visit) {
    for (std::size_t image = 0; image < images; ++image)
      for_each_window<G>([&](std::size_t output, IndexRange rows, IndexRange columns) {
        const T share = T{1} / static_cast<T>(rows.size() * columns.size());
        for (std::size_t row = rows.begin; row < rows.end; ++row)
          for (std::size_t column = columns.begin; column < columns.end; ++column)
            visit(image * output_size + output * G::channels,
                  image * input_size + (row * G::width + column) * G::channels, share);
      });
  }
};

/// The mean of each channel. Bound by memory, so other CPU back ends use it too.
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
