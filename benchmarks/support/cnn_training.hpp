#pragma once

#include "training.hpp"

/// The network of the multi-worker guide, and its training step on data in memory.
namespace bench {

using Cnn = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::Flatten, nn::Dense<128, nn::Relu>,
                           nn::Dense<10>>;

/// FLOP per image; a multiply-add counts as two. Forward: convolution and two dense layers. Backward: the weight
/// gradients of all three and the input gradients of the dense layers.
constexpr double cnn_flop_per_image = [] {
  constexpr double convolution = 2.0 * 26 * 26 * 32 * 9;
  constexpr double dense = 2.0 * 21632 * 128;
  constexpr double head = 2.0 * 128 * 10;
  return 2 * convolution + 3 * dense + 3 * head;
}();

/// Training of the CNN with SGD.
template <class Backend, class Strategy, class Gradients = nn::StoredGradients>
using TrainingBy = NetworkTraining<Cnn, nn::SGD, Backend, Strategy, Gradients>;

}  // namespace bench
