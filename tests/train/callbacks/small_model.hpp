// A small trainable model for tests of callbacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/train/model.hpp>

namespace small {

namespace nn = dist::nn;
using Strategy = dist::Mirrored<dist::ThreadAllReduce>;
using Net = nn::Sequential<nn::Input<4>, nn::Dense<8, nn::Relu>, nn::Dense<3>>;

/// Two replicas, a network with weights of this seed, and its model.
struct Model {
  explicit Model(std::uint64_t seed = 1, float rate = 0.01F)
      : strategy(2),
        net(strategy, seed),
        model(strategy, net, nn::Adam{.learning_rate = rate}, nn::SparseCategoricalCrossentropy{},
              nn::SparseCategoricalAccuracy{}) {}

  Strategy strategy;
  nn::Network<Net> net;
  nn::Model<Strategy, nn::Network<Net>, nn::Adam, nn::SparseCategoricalCrossentropy, nn::SparseCategoricalAccuracy>
      model;
};

inline auto examples(std::size_t rows = 24) {
  dist::Tensor<float> x{{rows, 4}};
  dist::Tensor<std::int32_t> y{{rows}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 5) % 7) - 3;
  for (std::size_t i = 0; i < rows; ++i) y[i] = static_cast<std::int32_t>(i % 3);
  return dist::data::tensor_slices(x, y) | dist::data::shuffle(rows, 3) | dist::data::batch(6);  // four batches
}

}  // namespace small
