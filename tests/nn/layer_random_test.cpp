#include <dist/nn/layer_random.hpp>

#include <cstdint>

#include <dist/core/tensor.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("the random numbers of a layer depend on its seed and the step") {
  constexpr std::uint64_t seed = 0xfedc'ba98'7654'3210U;
  dist::Tensor<float> state{nn::LayerRandom::state.shape};
  nn::LayerRandom::initialize(state.view(), seed);
  CHECK(nn::LayerRandom::next(state.view()).bits(7) == dist::RandomStream{seed, 0}.bits(7));
  CHECK(nn::LayerRandom::next(state.view()).bits(7) == dist::RandomStream{seed, 1}.bits(7));
  // A restored state continues the sequence.
  dist::Tensor<double> restored{state.shape()};
  for (std::size_t i = 0; i < state.size(); ++i) restored[i] = static_cast<double>(state[i]);
  CHECK(nn::LayerRandom::next(restored.view()).bits(7) == dist::RandomStream{seed, 2}.bits(7));
}

TEST_CASE("steps are counted beyond float's integers, and the mean of equal states is exact") {
  dist::Tensor<float> state{nn::LayerRandom::state.shape};
  nn::LayerRandom::initialize(state.view(), 5);
  state[4] = 0xffff;
  state[5] = 0x0fff;
  CHECK(nn::LayerRandom::next(state.view()).bits(1) == dist::RandomStream{5, 0x0fff'ffff}.bits(1));
  CHECK(state[4] == 0);
  CHECK(state[5] == 0x1000);
  CHECK(nn::LayerRandom::next(state.view()).bits(1) == dist::RandomStream{5, 0x1000'0000}.bits(1));
  CHECK(state[4] == 1);
}
