#pragma once

#include <cstddef>

#include <dist/core/config.hpp>

namespace dist::nn::reference {

/// Returns the sum of a[i] * b[i], over 16 partial sums, so that compilers can vectorise without reordering.
template <class T>
[[nodiscard]] T dot(const T* a, const T* b, std::size_t size) {
  constexpr std::size_t lanes = 16;
  const std::size_t whole = size - size % lanes;
  T partial[lanes] = {};
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) partial[lane] += a[i + lane] * b[i + lane];
  T sum{0};
  for (std::size_t i = whole; i < size; ++i) sum += a[i] * b[i];
  for (const T lane : partial) sum += lane;
  return sum;
}

/// Computes to[i] += factor * from[i].
template <class T>
void add_scaled(T factor, const T* from, T* to, std::size_t size) {
  DIST_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < size; ++i) to[i] += factor * from[i];
}

/// Computes to[i] += from[i].
template <class T>
void add(const T* from, T* to, std::size_t size) {
  DIST_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < size; ++i) to[i] += from[i];
}

/// True if no number is NaN or infinite.
template <class T>
[[nodiscard]] bool are_finite(const T* values, std::size_t size) {
  int is_finite = 1;
  for (std::size_t i = 0; i < size; ++i) is_finite &= static_cast<int>(values[i] - values[i] == T{0});
  return is_finite != 0;
}

/// Sets most[i] to the greater of most[i] and from[i], or to NaN if one of them is NaN.
template <class T>
void take_greater(const T* from, T* most, std::size_t size) {
  DIST_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < size; ++i)
    most[i] = (static_cast<int>(from[i] > most[i]) | static_cast<int>(from[i] != from[i])) != 0 ? from[i] : most[i];
}

/// Adds left[i] to to[i] and clears it, where from[i] is the maximum most[i] of several arrays. Calls for one array
/// after another give `left` to the first with the maximum, or with NaN if that is NaN.
template <class T>
void give_to_greatest(const T* from, const T* most, T* left, T* to, std::size_t size) {
  DIST_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < size; ++i) {
    const T rest = from[i] == most[i] ? T{0} : left[i];
    const T given = from[i] == most[i] ? left[i] : T{0};
    to[i] += from[i] != from[i] ? left[i] : given;
    left[i] = from[i] != from[i] ? T{0} : rest;
  }
}

}  // namespace dist::nn::reference
