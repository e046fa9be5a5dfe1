#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <dist/core/tensor.hpp>
#include <dist/nn/reference/vectors.hpp>

namespace dist::nn::reference {

/// exp(x) over its sum along the last axis, of `Classes` elements. Largest elements are taken out first, so that no power
/// overflows. Other CPU back ends use it too.
template <std::size_t Classes, class T>
class Softmax {
 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    for (std::size_t first = 0; first < x.size(); first += Classes) {
      const T* const from = x.data() + first;
      T* const to = y.data() + first;
      const T largest = *std::max_element(from, from + Classes);
      T sum{0};
      for (std::size_t i = 0; i < Classes; ++i) sum += to[i] = std::exp(from[i] - largest);
      const T share = T{1} / sum;
      for (std::size_t i = 0; i < Classes; ++i) to[i] *= share;
    }
  }

  /// dx = y * (dy - sum(y * dy)).
  template <class State>
  void input_gradient(State&, TensorView<const T> y, TensorView<const T> dy, TensorView<T> dx) {
    for (std::size_t first = 0; first < y.size(); first += Classes) {
      const T* const probability = y.data() + first;
      const T* const gradient = dy.data() + first;
      T* const to = dx.data() + first;
      const T mean = dot(probability, gradient, Classes);
      for (std::size_t i = 0; i < Classes; ++i) to[i] = probability[i] * (gradient[i] - mean);
    }
  }
};

}  // namespace dist::nn::reference
