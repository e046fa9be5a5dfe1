// A small convolutional network and batches, for tests of the backward pass.
#pragma once

#include <cstddef>

#include <dist/core/tensor.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/network.hpp>

namespace support {

using SmallNet = dist::nn::Sequential<dist::nn::Input<6, 6, 1>, dist::nn::Conv2D<4, 3, dist::nn::Relu>,
                                      dist::nn::Flatten, dist::nn::Dense<16, dist::nn::Relu>, dist::nn::Dense<3>>;

struct SmallBatch {
  dist::Tensor<float> x;
  dist::Tensor<int> y;

  SmallBatch(std::size_t rows, std::size_t seed) : x(dist::Shape{rows, 6, 6, 1}), y(dist::Shape{rows}) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7 + seed * 5) % 23) / 23 - 0.3f;
    for (std::size_t i = 0; i < rows; ++i) y[i] = static_cast<int>((i + seed) % 3);
  }
};

/// Runs forward, loss and backward, which calls `when_ready`.
template <class Network, class... WhenReady>
void compute(auto& replica, Network& net, const SmallBatch& batch, WhenReady&&... when_ready) {
  auto logits = net.forward(replica, dist::TensorView<const float>{batch.x});
  auto loss = dist::nn::sparse_categorical_crossentropy(replica, logits, dist::TensorView<const int>{batch.y}, 12);
  net.backward(replica, loss, when_ready...);
}

}  // namespace support
