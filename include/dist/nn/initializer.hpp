#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn {

/// The number of inputs of one output, and of outputs of one input; for convolutions times the elements of the window,
/// as in Keras.
struct Fans {
  std::size_t in = 1;   ///< inputs of one output
  std::size_t out = 1;  ///< outputs of one input
};

/// Zeros. An initialiser is an empty struct with `fill(view, fans, stream)`, which sets all elements of `view`. They
/// depend only on `stream`, the shape and their index, so a seed gives the same weights everywhere.
struct Zeros {
  template <class T>
  static void fill(TensorView<T> view, Fans, RandomStream) {
    for (T& element : view.elements()) element = T{0};
  }
};

/// In place of a bias initialiser: the layer has no bias (Keras' `use_bias=False`), as before a normalisation, which
/// would remove it.
struct NoBias {};

namespace detail {

/// True for the initialiser of a bias, false for NoBias.
template <class BiasInitializer>
inline constexpr bool has_bias = !std::is_same_v<BiasInitializer, NoBias>;

// The compiler's square root: `<cmath>` is slow to compile.
[[nodiscard]] inline double square_root(double x) { return __builtin_sqrt(x); }

/// Fills `view` with uniform numbers in [-limit, limit).
template <class T>
void fill_uniform(TensorView<T> view, double limit, RandomStream stream) {
  for (std::size_t i = 0; i < view.size(); ++i)
    view.data()[i] = static_cast<T>(limit * (2.0 * stream.uniform<double>(i) - 1.0));
}

/// Fills `view` with normal numbers with mean 0, truncated at two deviations by drawing again, and scaled to standard
/// deviation `deviation`: a standard normal truncated to [-2, 2] has 0.8796… = sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)).
template <class T>
void fill_truncated_normal(TensorView<T> view, double deviation, RandomStream stream) {
  constexpr double truncated_deviation = 0.87962566103423978;
  constexpr std::uint64_t next_draw = std::uint64_t{1} << 40;  // far above any element's index
  for (std::size_t i = 0; i < view.size(); ++i) {
    std::uint64_t index = i;
    double value = stream.normal<double>(index);
    while (value < -2.0 || value > 2.0) value = stream.normal<double>(index += next_draw);
    view.data()[i] = static_cast<T>(value * (deviation / truncated_deviation));
  }
}

/// Returns `count` orthonormal vectors of `length` >= `count` elements, one after the other: the columns of Q in the
/// decomposition Q R of a matrix [length, count] of normal numbers, with a positive diagonal of R.
[[nodiscard]] std::vector<double> orthonormal(std::size_t count, std::size_t length, RandomStream stream);

#ifdef DIST_COMPILED
extern template void fill_uniform(TensorView<float>, double, RandomStream);
extern template void fill_truncated_normal(TensorView<float>, double, RandomStream);
#endif

}  // namespace detail

/// Uniform within sqrt(6 / (in + out)): Glorot and Bengio, "Understanding the difficulty of training deep
/// feedforward neural networks", AISTATS 2010, eq. 16. Keras' default for kernels.
struct GlorotUniform {
  template <class T>
  static void fill(TensorView<T> view, Fans fans, RandomStream stream) {
    detail::fill_uniform(view, detail::square_root(6.0 / static_cast<double>(fans.in + fans.out)), stream);
  }
};

/// Truncated normal with variance 2 / (in + out) (see GlorotUniform).
struct GlorotNormal {
  template <class T>
  static void fill(TensorView<T> view, Fans fans, RandomStream stream) {
    detail::fill_truncated_normal(view, detail::square_root(2.0 / static_cast<double>(fans.in + fans.out)), stream);
  }
};

/// Uniform within sqrt(6 / in), for layers followed by ReLU: He et al., "Delving deep into rectifiers", ICCV
/// 2015, eq. 10 gives the variance, 2 / in.
struct HeUniform {
  template <class T>
  static void fill(TensorView<T> view, Fans fans, RandomStream stream) {
    detail::fill_uniform(view, detail::square_root(6.0 / static_cast<double>(fans.in)), stream);
  }
};

/// Truncated normal with variance 2 / in (see HeUniform).
struct HeNormal {
  template <class T>
  static void fill(TensorView<T> view, Fans fans, RandomStream stream) {
    detail::fill_truncated_normal(view, detail::square_root(2.0 / static_cast<double>(fans.in)), stream);
  }
};

/// A matrix with orthonormal columns, or rows if it has fewer of them: Saxe, McClelland and Ganguli, "Exact solutions
/// to the nonlinear dynamics of learning in deep linear neural networks", ICLR 2014. Keras' Orthogonal with its default
/// gain of 1. The last axis has the matrix's columns, all other axes are its rows. Takes time in proportion to rows
/// times columns times the smaller of the two.
struct Orthogonal {
  template <class T>
  static void fill(TensorView<T> view, Fans, RandomStream stream) {
    if (view.size() == 0) return;
    const Shape& shape = view.shape();
    const std::size_t columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
    const std::size_t rows = view.size() / columns;
    const bool is_tall = rows >= columns;
    const std::vector<double> vectors = detail::orthonormal(is_tall ? columns : rows, is_tall ? rows : columns, stream);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column)
        view[row * columns + column] = static_cast<T>(vectors[is_tall ? column * rows + row : row * columns + column]);
  }
};

/// Uniform in [-0.05, 0.05): Keras' default for the tables of Embedding.
struct SmallUniform {
  template <class T>
  static void fill(TensorView<T> view, Fans, RandomStream stream) {
    detail::fill_uniform(view, 0.05, stream);
  }
};

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/nn/initializer.ipp>
#endif
