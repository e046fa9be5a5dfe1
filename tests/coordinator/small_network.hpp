/// A small network with all kinds of state on parameter servers, and training steps for any strategy.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/coordinator/worker_session.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/sequential.hpp>

namespace small {

namespace nn = dist::nn;

using Dense = nn::Sequential<nn::Input<6>, nn::Dense<5, nn::Relu>, nn::Dense<3>>;
constexpr std::size_t rows = 8;

struct Batch {
  dist::Tensor<float> x{dist::Shape{rows, 6}};
  dist::Tensor<std::int32_t> y{dist::Shape{rows}};
};
/// Different in each step.
inline Batch batch_of(int step) {
  Batch batch;
  for (std::size_t i = 0; i < batch.x.size(); ++i)
    batch.x[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + 3.0 * step));
  for (std::size_t row = 0; row < rows; ++row)
    batch.y[row] = static_cast<std::int32_t>((row + static_cast<std::size_t>(step)) % 3);
  return batch;
}

/// The step of a replica for any strategy.
template <class Replica, class Net, class Optimizer>
float take_step(Replica& replica, Net& net, Optimizer& optimizer, int step) {
  const Batch batch = batch_of(step);
  const auto outputs = net.forward(replica, batch.x);
  const auto loss = nn::sparse_categorical_crossentropy(replica, outputs, batch.y, rows);
  net.backward(replica, loss, optimizer.when_ready(replica));
  optimizer.apply_gradients(replica);
  return static_cast<float>(loss.value());
}

struct Train {
  float operator()(auto& replica, auto& net, auto& optimizer, int step) const {
    return take_step(replica, net, optimizer, step);
  }
};

}  // namespace small
