#pragma once

#include <dist/nn/initializer.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn::detail {

/// Gram-Schmidt's method, twice for each vector: one pass loses the precision that cancels in it.
[[nodiscard]] DIST_INLINE std::vector<double> orthonormal(std::size_t count, std::size_t length, RandomStream stream) {
  std::vector<double> vectors(count * length);
  const ThreadOfRow elements{length};
  for (std::size_t which = 0; which < count; ++which) {
    double* const vector = &vectors[which * length];
    for (std::size_t i = 0; i < length; ++i) vector[i] = stream.normal<double>(i * count + which);
    for (int pass = 0; pass < 2; ++pass)
      for (const double* other = vectors.data(); other != vector; other += length) {
        const double part = sum_of(elements, [&](std::size_t i) { return other[i] * vector[i]; });
        for_each_of(elements, [&](std::size_t i) { vector[i] -= part * other[i]; });
      }
    const double norm = square_root(sum_of(elements, [&](std::size_t i) { return vector[i] * vector[i]; }));
    for_each_of(elements, [&](std::size_t i) { vector[i] /= norm; });
  }
  return vectors;
}

}  // namespace dist::nn::detail
