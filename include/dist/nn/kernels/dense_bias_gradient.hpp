#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <dist/core/config.hpp>
#include <dist/core/vectors.hpp>
#include <dist/nn/kernels/vector.hpp>

namespace dist::nn::kernels {

/// What a dense layer's parameter gradients are made of: its input x [rows, inputs] and the gradient dy [rows, units]
/// of its output before the activation, of one replica.
template <class T>
struct DenseBatch {
  const T* x = nullptr;
  const T* dy = nullptr;
  std::size_t rows = 0;
};

/// The body of dense_bias_gradient, for vectors of so many bytes.
template <std::size_t Units, class T>
struct DenseBiasGradient {
  std::span<const DenseBatch<T>> batches;
  T* gradient;

  template <std::size_t WidestBytes>
  DIST_ALWAYS_INLINE void operator()() const {
    constexpr std::size_t bytes = vector_bytes_within<T, WidestBytes>(Units);
    constexpr std::size_t lanes = bytes / sizeof(T);
    for (std::size_t unit = 0; unit < Units; unit += lanes) {
      const std::size_t at = std::min(unit, Units - lanes);
      Vector<T, bytes> sum = {};
      for (const DenseBatch<T>& batch : batches) {
        for (std::size_t row = 0; row < batch.rows; ++row) {
          Vector<T, bytes> term;
          load<bytes>(term, batch.dy + row * Units + at);
          sum += term;
        }
      }
      store<bytes>(sum, gradient + at);
    }
  }
};

/// The gradient of a dense layer's bias [Units]: the sum of dy over all batches and their rows, in order.
template <std::size_t Units, class T>
void dense_bias_gradient(std::span<const DenseBatch<T>> batches, T* gradient) {
  dist::detail::with_widest_vectors(DenseBiasGradient<Units, T>{batches, gradient});
}

}  // namespace dist::nn::kernels
