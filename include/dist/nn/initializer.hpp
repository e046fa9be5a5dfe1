#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/core/random.hpp>
#include <dist/core/tensor.hpp>

namespace dist::nn {

/// How many inputs feed one output of a layer, and how many outputs one input feeds. A convolution counts the
/// elements of its window too, as Keras does.
struct Fans {
  std::size_t in = 1;
  std::size_t out = 1;
};

/// An initialiser is an empty struct with `fill(view, fans, stream)`: it gives every element of `view` its
/// first value. Element `i` depends on `stream` and `i` alone, so the same seed means the same weights on
/// every replica and machine.
struct Zeros {
  template <class T>
  static void fill(TensorView<T> view, Fans, RandomStream) {
    for (T& element : view.elements()) element = T{0};
  }
};

namespace detail {

// The compiler's own square root: <cmath> costs more than this header.
[[nodiscard]] inline double square_root(double x) { return __builtin_sqrt(x); }

/// Uniform in [-limit, limit).
template <class T>
void fill_uniform(TensorView<T> view, double limit, RandomStream stream) {
  for (std::size_t i = 0; i < view.size(); ++i)
    view.data()[i] = static_cast<T>(limit * (2.0 * stream.uniform<double>(i) - 1.0));
}

/// Normal with mean 0, cut at two standard deviations by drawing again, and widened so that after the cut the
/// standard deviation is `deviation`: 0.8796… is that of the standard normal between -2 and 2, sqrt(1 - 4
/// phi(2) / (2 Phi(2) - 1)).
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

}  // namespace detail

/// Uniform within sqrt(6 / (in + out)): Glorot and Bengio, "Understanding the difficulty of training deep
/// feedforward neural networks", AISTATS 2010, eq. 16. Keras' default for kernels.
struct GlorotUniform {
  template <class T>
  static void fill(TensorView<T> view, Fans fans, RandomStream stream) {
    detail::fill_uniform(view, detail::square_root(6.0 / static_cast<double>(fans.in + fans.out)), stream);
  }
};

/// Truncated normal with variance 2 / (in + out), the same paper's.
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

/// Truncated normal with variance 2 / in, the same paper's.
struct HeNormal {
  template <class T>
  static void fill(TensorView<T> view, Fans fans, RandomStream stream) {
    detail::fill_truncated_normal(view, detail::square_root(2.0 / static_cast<double>(fans.in)), stream);
  }
};

/// Uniform in [-0.05, 0.05): Keras' default for the tables of Embedding, whatever their size.
struct SmallUniform {
  template <class T>
  static void fill(TensorView<T> view, Fans, RandomStream stream) {
    detail::fill_uniform(view, 0.05, stream);
  }
};

}  // namespace dist::nn
