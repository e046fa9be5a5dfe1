#include <dist/nn/cuda/rows.cuh>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("Softmax on GPUs matches the plain loops, with few and with many classes") {
  using Net =
      nn::Sequential<nn::Input<4, 3, 1>, nn::Conv2D<5, 2>, nn::Softmax, nn::Flatten, nn::Dense<70>, nn::Softmax>;
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy}) {
    fake_cuda::restart({.schedule = schedule});
    dist_test::check_against<Net, nn::Cuda, nn::Reference>({3, 1, 0, 4});
  }
}

TEST_CASE("Softmax never overflows, maps minus infinity to 0, and propagates NaN") {
  constexpr std::size_t classes = 40;  // more than one lane
  constexpr float infinity = std::numeric_limits<float>::infinity();
  fake_cuda::restart({});
  dist_test::Bench<nn::Cuda> bench;
  nn::cuda::State state{bench.queue()};
  const auto of_row = [&](const std::vector<float>& row) {
    const dist_test::Bench<nn::Cuda>::Elements<float> x{bench, row};
    const dist::Shape shape{1, classes};
    nn::detail::SoftmaxKernel<nn::Cuda, classes, float>{}.forward(state, {x.span().data(), shape},
                                                                  {x.span().data(), shape});
    return support::on_host(bench.queue(), x.span());
  };
  std::vector<float> row(classes, -infinity);
  row[0] = 1e30F;
  row[39] = 1e30F;
  const auto halves = of_row(row);
  for (std::size_t i = 0; i < classes; ++i) CHECK(halves[i] == (i == 0 || i == 39 ? 0.5F : 0.0F));
  row[7] = std::numeric_limits<float>::quiet_NaN();
  for (const float share : of_row(row)) CHECK(std::isnan(share));
}
