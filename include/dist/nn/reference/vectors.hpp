#pragma once

#include <cstddef>

#include <dist/core/config.hpp>

namespace dist::nn::reference {

/// The sum of a[i] * b[i], over 16 partial sums so that a compiler may use vector registers without
/// reordering additions.
template <class T>
[[nodiscard]] T dot(const T* a, const T* b, std::size_t size) {
  constexpr std::size_t lanes = 16;
  T partial[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) partial[lane] += a[i + lane] * b[i + lane];
  T sum{0};
  for (; i < size; ++i) sum += a[i] * b[i];
  for (const T lane : partial) sum += lane;
  return sum;
}

/// to[i] += factor * from[i].
template <class T>
void add_scaled(T factor, const T* from, T* to, std::size_t size) {
  DIST_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < size; ++i) to[i] += factor * from[i];
}

/// to[i] += from[i].
template <class T>
void add(const T* from, T* to, std::size_t size) {
  DIST_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < size; ++i) to[i] += from[i];
}

}  // namespace dist::nn::reference
