#pragma once

#include <cstddef>

namespace dist::nn::kernels {

/// What a dense layer's parameter gradients are made of: its input x [rows, inputs] and the gradient dy [rows, units]
/// of its output before the activation, of one replica.
template <class T>
struct DenseBatch {
  const T* x = nullptr;
  const T* dy = nullptr;
  std::size_t rows = 0;
};

}  // namespace dist::nn::kernels
