#include <dist/nn/cuda/pool2d.cuh>

#include <cstddef>
#include <vector>

#include <dist/core/static_shape.hpp>
#include <dist/nn/cuda/backend.cuh>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/fake_cuda/machine.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

TEST_CASE("MaxPool2D on GPUs matches the plain loops, at changing batch sizes") {
  // Adjacent, overlapping and separate windows, and one of the size of the image. Windows that reach over the border:
  // with one more row below than above, and with more above and left than below and right.
  using Net = nn::Sequential<nn::Input<8, 9, 2>, nn::Conv2D<6, 2>, nn::MaxPool2D<2>, nn::Conv2D<3, 1>>;
  using Overlapping = nn::Sequential<nn::Input<8, 9, 1>, nn::Conv2D<3, 2>, nn::MaxPool2D<3, 2>>;
  using Apart = nn::Sequential<nn::Input<9, 8, 1>, nn::Conv2D<3, 2>, nn::MaxPool2D<2, 3>, nn::GlobalMaxPool2D>;
  using Padded = nn::Sequential<nn::Input<7, 8, 1>, nn::Conv2D<3, 2>, nn::MaxPool2D<3, 2, nn::Same>,
                                nn::MaxPool2D<3, 1, nn::Pad<2, 1>>>;
  fake_cuda::restart({});
  dist_test::check_against<Net, nn::Cuda, nn::Reference>({4, 1, 0, 4});
  dist_test::check_against<Overlapping, nn::Cuda, nn::Reference>({4, 1});
  dist_test::check_against<Apart, nn::Cuda, nn::Reference>({3});
  dist_test::check_against<Padded, nn::Cuda, nn::Reference>({3, 1});
}

TEST_CASE("the first of equal maxima in row-major order gets the gradient, like in the plain loops") {
  using Geometry = nn::PoolGeometry<dist::StaticShape<7, 6, 2>, 3, 2>;
  fake_cuda::restart({});
  dist_test::Bench<nn::Cuda> bench;
  const dist::Shape images{2, 7, 6, 2}, pooled{2, 3, 2, 2};
  std::vector<float> x(images.elements()), dy(pooled.elements()), dx(images.elements(), 99);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i % 5 / 2);  // 0, 1 and 2, many times each
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<float>(i + 1);
  nn::Reference::State none;
  nn::reference::MaxPool2D<Geometry, float>{}.input_gradient(none, dist::TensorView<const float>{x.data(), images},
                                                             dist::TensorView<const float>{dy.data(), pooled},
                                                             dist::TensorView<float>{dx.data(), images});

  nn::cuda::State state{bench.queue()};
  const dist_test::Bench<nn::Cuda>::Elements<float> values{bench, x}, slopes{bench, dy}, found{bench, x};
  nn::cuda::MaxPool2D<Geometry, float>{}.input_gradient(state, {values.span().data(), images},
                                                        {slopes.span().data(), pooled}, {found.span().data(), images});
  const auto gradient = support::on_host(bench.queue(), found.span());
  for (std::size_t i = 0; i < dx.size(); ++i) CHECK(gradient[i] == dx[i]);
}
