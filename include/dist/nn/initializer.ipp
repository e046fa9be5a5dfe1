#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <dist/nn/initializer.hpp>

namespace dist::nn::detail {

[[nodiscard]] DIST_INLINE double product_of(const double* a, const double* b, std::size_t length) {
  double sum = 0;
  for (std::size_t i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

/// Gram-Schmidt's method, twice for each vector: one pass loses the precision that cancels in it.
[[nodiscard]] DIST_INLINE std::vector<double> orthonormal(std::size_t count, std::size_t length, RandomStream stream) {
  std::vector<double> vectors(count * length);
  for (std::size_t which = 0; which < count; ++which) {
    double* const vector = &vectors[which * length];
    for (std::size_t i = 0; i < length; ++i) vector[i] = stream.normal<double>(i * count + which);
    for (int pass = 0; pass < 2; ++pass)
      for (const double* other = vectors.data(); other != vector; other += length) {
        const double part = product_of(other, vector, length);
        for (std::size_t i = 0; i < length; ++i) vector[i] -= part * other[i];
      }
    const double norm = std::sqrt(product_of(vector, vector, length));
    for (std::size_t i = 0; i < length; ++i) vector[i] /= norm;
  }
  return vectors;
}

}  // namespace dist::nn::detail
