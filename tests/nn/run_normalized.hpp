// Networks with BatchNormalization, which need a strategy, with back ends on any device.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/outputs.hpp>
#include <support/on_host.hpp>

#include "nn/run_network.hpp"

namespace dist_test {

template <class Statistics>
using NormalizedNet =
    dist::nn::Sequential<dist::nn::Input<5, 4, 1>, dist::nn::Conv2D<3, 2>, dist::nn::BatchNormalization<Statistics>,
                         dist::nn::ReLU, dist::nn::Conv2D<4, 2>, dist::nn::BatchNormalization<Statistics>,
                         dist::nn::Flatten, dist::nn::Dense<2>>;

/// Returns two replicas' outputs, gradients and moving statistics after steps with these rows each, and outputs in
/// inference.
template <class Net, class Backend, class T, class Strategy>
std::vector<double> run_normalized(Strategy& strategy) {
  const std::size_t divisions[][2] = {{40, 24}, {7, 0}, {0, 0}, {3, 5}};
  dist::nn::Network<Net, Backend, T> net{strategy, 3};
  std::vector<double> all;
  const auto step = [&](const std::size_t(&rows)[2], auto mode) {
    std::vector<double> of_replica[2];
    strategy.run([&](auto& replica) {
      const std::size_t local = replica.local_index();
      const auto queue = replica.queue();
      using Space = typename Strategy::Device::Space;
      const auto images = converted<T>(numbers(rows[local] * Net::InputShape::elements, 5 + local + rows[local]));
      auto x = dist::nn::detail::make_layer_memory<Backend, T>(queue, images.size() + 1);
      const dist::TensorView<T, Space> batch{x.data(), Net::InputShape::shape().stacked(rows[local])};
      queue.copy(std::span<const T>{images}, batch.elements());
      const auto y = net.forward(replica, dist::TensorView<const T, Space>{batch}, mode);
      const auto values = support::on_host(queue, y.values);
      std::vector<T> slopes;
      for (std::size_t i = 0; i < values.size(); ++i) slopes.push_back(values[i] - static_cast<T>(i % 5));
      queue.copy(std::span<const T>{slopes}, y.gradient.elements());
      net.backward(replica, 0);
      const auto gradients = support::on_host(queue, std::as_const(net).gradients().component(replica));
      const auto moving = support::component_on_host(net.state(), replica);
      auto& mine = of_replica[local];
      mine.insert(mine.end(), values.begin(), values.end());
      mine.insert(mine.end(), gradients.begin(), gradients.end());
      mine.insert(mine.end(), moving.begin(), moving.end());
    });
    for (const auto& mine : of_replica) all.insert(all.end(), mine.begin(), mine.end());
  };
  for (const auto& rows : divisions) step(rows, dist::nn::training);
  step(divisions[3], dist::nn::inference);
  return all;
}

}  // namespace dist_test
