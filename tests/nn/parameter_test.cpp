#include <dist/nn/parameter.hpp>

#include <cstddef>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/guarded_all_reduce.hpp>
#include <support/guarded_device.hpp>

namespace nn = dist::nn;

TEST_CASE("parameters are named as in Keras") {
  CHECK(nn::Parameter{"dense", 0, "kernel", {}, 0}.name() == "dense/kernel");
  CHECK(nn::Parameter{"dense", 2, "bias", {}, 0}.name() == "dense_2/bias");
}

TEST_CASE("foreign parameters keep their names") {
  CHECK(nn::Parameter{"conv1", 0, "weight", {}, 0, '.'}.name() == "conv1.weight");
  CHECK(nn::Parameter{"", 0, "weight", {}, 0, '.'}.name() == "weight");
}

TEST_CASE("padding ends at a cache line of float") {
  CHECK(nn::padded(0) == 0);
  CHECK(nn::padded(1) == 16);
  CHECK(nn::padded(16) == 16);
  CHECK(nn::padded(17) == 32);
}

TEST_CASE("ParameterPart reads and writes one parameter, also in device memory") {
  dist::Mirrored<testing::GuardedAllReduce, testing::GuardedDevice> strategy{2};
  dist::Tensor<float> counted{{48}};
  for (std::size_t i = 0; i < 48; ++i) counted[i] = static_cast<float>(i);
  auto all = strategy.variable<float, dist::OnWrite, dist::None>({48}, counted);
  const nn::ParameterPart bias{all, nn::Parameter{"dense", 0, "bias", {3}, 16}};
  CHECK(bias.whole(strategy.scope()) == dist::Tensor<float>{{3}, {16, 17, 18}});
  bias.restore(strategy.scope(), dist::Tensor<float>{{3}, {1, 2, 3}});
  CHECK_THROWS_AS(bias.restore(strategy.scope(), dist::Tensor<float>{{2}, {1, 2}}), dist::ShapeMismatch);
  for (std::size_t i = 0; i < 3; ++i) counted[16 + i] = static_cast<float>(i + 1);
  CHECK(all.read(strategy.scope()) == counted);
}
