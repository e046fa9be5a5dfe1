#pragma once

#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/nn/kernels/vector.hpp>

namespace dist::nn::kernels {

/// Sets x to its exponential, with a relative error below 3e-7: 0 below -87, so that no result is denormal. x must be
/// at most 0, or NaN. (Cody and Waite's reduction to [-ln(2) / 2, ln(2) / 2], and a polynomial of degree 6.)
template <std::size_t Bytes>
DIST_ALWAYS_INLINE void exponential(Vector<float, Bytes>& x) noexcept {
  using Floats = Vector<float, Bytes>;
  using Integers = typename VectorOf<float, Bytes>::Indices;
  const Floats shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: rounds to an integer, in the low bits
  const Floats n = shifted - 12582912.0f;
  const Floats r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Integers power = (reinterpret_cast<Integers>(shifted) - 0x4b400000) << 23;
  const Integers scaled = reinterpret_cast<Integers>(p) + power;
  const Integers of_small = x < Floats{} - 87.0f;
  const Integers of_numbers = x == x;
  const Integers result = (scaled & ~of_small & of_numbers) | (reinterpret_cast<Integers>(x) & ~of_numbers);
  x = reinterpret_cast<Floats>(result);
}

}  // namespace dist::nn::kernels
