#include <dist/nn/cuda/elementwise.cuh>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include <dist/device/cuda/device.cuh>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;
namespace cudnn = dist::nn::cuda;

TEST_CASE("activations on a GPU match the host, also in place, and an identity in place launches no work") {
  fake_cuda::restart({});
  const std::size_t device = 0;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const dist::Cuda::Queue queue = queues[0];
  cudnn::State state{queue};
  constexpr std::size_t count = 4;
  const std::array<float, count> x{-1, 0, 2, std::numeric_limits<float>::quiet_NaN()};
  const std::array<float, count> slopes{3, 4, 5, 6};
  const cudnn::Memory<float> first{queue, count}, second{queue, count};
  const cudnn::View<float> y{first.data(), {count}}, dy{second.data(), {count}};
  queue.copy(std::span<const float>{x}, y.elements());
  queue.copy(std::span<const float>{slopes}, dy.elements());
  cudnn::Elementwise<nn::Relu, float> relu;
  relu.forward(state, y, y);
  const std::size_t before = fake_cuda::counts().kernels;
  cudnn::Elementwise<nn::Linear, float>{}.input_gradient(state, y, dy, dy);
  CHECK(fake_cuda::counts().kernels == before);
  relu.input_gradient(state, y, dy, dy);
  std::array<float, count> values{}, gradients{};
  queue.copy(y.elements(), std::span<float>{values});
  queue.copy(dy.elements(), std::span<float>{gradients});
  queue.wait();
  CHECK(values[0] == 0);
  CHECK(values[2] == 2);
  CHECK(std::isnan(values[3]));
  CHECK(gradients == std::array<float, count>{0, 0, 5, 6});
}
