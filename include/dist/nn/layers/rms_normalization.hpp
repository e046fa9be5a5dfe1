#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn::detail {

/// Returns 1 / sqrt(mean(x^2) + epsilon) of a row of `size` elements. The sum is in double.
template <class Threads, class X>
[[nodiscard]] DIST_HD auto inverse_root_mean_square(const Threads& row, X x, std::size_t size, double epsilon) {
  using std::sqrt;
  using Number = decltype(sum_of(row, [&](auto k) { return as_double(x[k]); }));
  const Number squares = sum_of(row, [&](auto k) {
    const auto value = as_double(x[k]);
    return value * value;
  });
  return Number{Number(1) / sqrt(squares * Number(1 / static_cast<double>(size)) + Number(epsilon))};
}
/// y = x * factor * scale.
template <class Compute, class Threads, class X, class Number, class Scale, class Y>
DIST_HD void scale_row(const Threads& row, X x, const Number& factor, Scale scale, Y y) {
  const Compute of_row = static_cast<Compute>(factor);
  for_each_of(row, [&](auto k) { y[k] = x[k] * of_row * scale[k]; });
}

/// Normalises a row and stores its factor.
template <class T>
struct RmsNormalizeRow {
  const T* x;
  const T* scale;
  std::size_t size;
  double epsilon;
  double* factors;
  T* y;
  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t row) const {
    const double factor = inverse_root_mean_square(threads, x + row * size, size, epsilon);
    if (threads.is_first()) factors[row] = factor;
    scale_row<T>(threads, x + row * size, factor, scale, y + row * size);
  }
};
/// With n = x * factor: dx = (dy * scale - n * mean(dy * scale * n)) * factor.
template <class T>
struct RmsGradientOfRow {
  const T* x;
  const T* scale;
  const T* dy;
  const double* factors;
  std::size_t size;
  T* dx;
  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t row) const {
    const T* const values = x + row * size;
    const T* const slopes = dy + row * size;
    T* const to = dx + row * size;
    const double factor = factors[row];
    const double sum =
        sum_of(threads, [&](auto k) { return as_double(slopes[k]) * as_double(scale[k]) * as_double(values[k]); });
    const auto of_row = static_cast<T>(factor);
    const auto mean = static_cast<T>(sum * factor * factor / static_cast<double>(size));
    for_each_of(threads, [&](auto k) { to[k] = (slopes[k] * scale[k] - values[k] * mean) * of_row; });
  }
};
/// Adds an element's term of the gradient of the scale.
template <class T>
struct GradientOfScale {
  using Sum = double;
  static constexpr std::size_t count = 1;
  const T* x;
  const T* dy;
  const double* factors;
  std::size_t size;
  template <class Sums>
  DIST_HD void operator()(std::size_t row, std::size_t channel, Sums&& sums) const {
    const std::size_t element = row * size + channel;
    sums[0] += as_double(dy[element]) * as_double(x[element]) * factors[row];
  }
};
/// Converts the gradient of the scale.
template <class T>
struct TakeScaleGradient {
  const double* sums;
  T* gradient;
  DIST_HD void operator()(std::size_t c) const { gradient[c] = static_cast<T>(sums[c]); }
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// Keras' constant argument. To change it, derive a struct and redefine it.
struct RMSNormalizationOptions {
  static constexpr double epsilon = 1e-6;  ///< added to the mean of the squares, above 0
};

/// Normalises each row of the last axis by the root of the mean of its squares (Zhang and Sennrich, "Root mean square
/// layer normalization", NeurIPS 2019); parameter scale [channels], initially 1.
///
///   y = scale * x / sqrt(mean(x^2) + epsilon)
///
/// Rows are independent, so training equals inference, with any number of replicas.
template <class Options = RMSNormalizationOptions>
struct RMSNormalization {
  static_assert(Options::epsilon > 0, "nn::RMSNormalization needs an epsilon above 0, as all elements may be 0");

  /// The bound layer.
  template <class In>
  struct On {
    static_assert(In::rank > 0,
                  "nn::RMSNormalization normalises along the last axis, and its input has no axis: put nn::Reshape "
                  "before it");
    using Layer = RMSNormalization;
    using Output = In;
    /// The extent of the last axis.
    static constexpr std::size_t channels = In::last_extent;
    static constexpr std::string_view name = "rms_normalization";
    static constexpr std::array parameters{ParameterSpec{"scale", Shape{channels}}};
    static constexpr bool is_view = false;

    template <std::size_t, class T>
    static void initialize(TensorView<T> view, RandomStream) {
      std::fill_n(view.data(), view.size(), T{1});
    }

    /// Computes the layer. Keeps a factor per row until `backward`.
    template <class Backend, class T>
    class Operation {
     public:
      void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
                   const ParameterViewsOn<Backend, const T, 1>& weights, ViewOn<Backend, T> y) {
        const std::size_t rows = x.size() / channels;
        if (reserved_ < rows) {
          factors_ = detail::make_layer_memory<Backend, double>(detail::queue_of<Backend>(state), rows);
          reserved_ = rows;
        }
        detail::for_each_row<Backend>(state, rows, channels,
                                      detail::RmsNormalizeRow<T>{x.data(), weights[0].data(), channels,
                                                                 Options::epsilon, factors_.data(), y.data()});
      }
      template <bool InputGradient>
      void backward(typename Backend::State& state, ViewOn<Backend, const T> x,
                    const ParameterViewsOn<Backend, const T, 1>& weights, ViewOn<Backend, const T>,
                    ViewOn<Backend, T> dy, const ParameterViewsOn<Backend, T, 1>& gradients, ViewOn<Backend, T> dx) {
        const auto queue = detail::queue_of<Backend>(state);
        const std::size_t rows = x.size() / channels;
        if (sums_.data() == nullptr) sums_ = detail::make_layer_memory<Backend, double>(queue, channels);
        detail::sum_columns<Backend>(state, rows, channels,
                                     detail::GradientOfScale<T>{x.data(), dy.data(), factors_.data(), channels},
                                     sums_.data());
        queue.for_each({0, channels}, detail::TakeScaleGradient<T>{sums_.data(), gradients[0].data()});
        if constexpr (InputGradient)
          detail::for_each_row<Backend>(state, rows, channels,
                                        detail::RmsGradientOfRow<T>{x.data(), weights[0].data(), dy.data(),
                                                                    factors_.data(), channels, dx.data()});
      }

     private:
      detail::LayerMemory<Backend, double> factors_;
      detail::LayerMemory<Backend, double> sums_;
      std::size_t reserved_ = 0;
    };
  };
};

}  // namespace dist::nn
