#include <dist/nn/cuda/dense.cuh>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/nn/geometry.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/reference/layers.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;
namespace cudnn = dist::nn::cuda;

namespace {

using Geometry = nn::DenseGeometry<7, 5, nn::Relu>;
constexpr std::size_t rows = 3;

std::vector<float> numbers(std::size_t count, std::size_t step) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<float>((i * step + 3) % 11) / 11.0F - 0.5F;
  return all;
}

/// A tensor in GPU memory that the host can read back.
struct OnGpu {
  OnGpu(const dist::Cuda::Queue& of, dist::Shape extents, const std::vector<float>& values)
      : queue(of), memory(of, values.size()), view(memory.data(), extents) {
    queue.copy(std::span<const float>{values}, view.elements());
  }
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> all(view.size());
    queue.copy(view.elements(), std::span<float>{all});
    queue.wait();
    return all;
  }
  dist::Cuda::Queue queue;
  cudnn::Memory<float> memory;
  cudnn::View<float> view;
};

void check_near(const std::vector<float>& values, const std::vector<float>& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - expected[i]) < 1e-5F);
}

}  // namespace

TEST_CASE("Dense by cuBLAS matches the plain loops, and a failed product throws") {
  fake_cuda::restart({});
  const std::size_t device = 0;
  const dist::Cuda::Queues queues{std::span{&device, 1}, std::chrono::seconds{10}};
  const dist::Cuda::Queue queue = queues[0];
  cudnn::State state{queue};
  const auto x = numbers(rows * 7, 5), kernel = numbers(35, 4), bias = numbers(5, 2), dy = numbers(rows * 5, 3);
  std::vector<float> y(rows * 5), kernel_gradient(35), bias_gradient(5), dx(rows * 7);
  nn::Reference::State none;
  nn::reference::Dense<Geometry, float> loops;
  const dist::TensorView<const float> xs{x.data(), {rows, 7}}, kernels{kernel.data(), {7, 5}}, biases{bias.data(), {5}},
      dys{dy.data(), {rows, 5}};
  loops.forward(none, xs, kernels, biases, {y.data(), {rows, 5}});
  loops.parameter_gradients(none, xs, dys, {kernel_gradient.data(), {7, 5}}, {bias_gradient.data(), {5}});
  loops.input_gradient(none, dys, kernels, {dx.data(), {rows, 7}});

  cudnn::Dense<Geometry, float> dense;
  const OnGpu gx{queue, {rows, 7}, x}, gkernel{queue, {7, 5}, kernel}, gbias{queue, {5}, bias},
      gdy{queue, {rows, 5}, dy};
  const std::vector<float> wrong(35, 99);  // to be overwritten
  const OnGpu gy{queue, {rows, 5}, std::vector<float>(15, 99)}, gkernel_gradient{queue, {7, 5}, wrong},
      gbias_gradient{queue, {5}, std::vector<float>(5, 99)}, gdx{queue, {rows, 7}, std::vector<float>(21, 99)};
  dense.forward(state, gx.view, gkernel.view, gbias.view, gy.view);
  dense.parameter_gradients(state, gx.view, gdy.view, gkernel_gradient.view, gbias_gradient.view);
  dense.input_gradient(state, gdy.view, gkernel.view, gdx.view);
  check_near(gy.values(), y);
  check_near(gkernel_gradient.values(), kernel_gradient);
  check_near(gbias_gradient.values(), bias_gradient);
  check_near(gdx.values(), dx);

  fake_cuda::fail_call("cublasSgemm", cudaErrorUnknown);
  CHECK_THROWS_WITH_AS(dense.input_gradient(state, gdy.view, gkernel.view, gdx.view), doctest::Contains("cublasSgemm"),
                       nn::CuBlasError);
}
