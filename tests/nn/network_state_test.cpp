#include <dist/nn/network_state.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/core/float16.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include "support/allocations.hpp"

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {
using Keeps = nn::Sequential<nn::Input<2>, nn::BatchNormalization<>>;
using KeepsNothing = nn::Sequential<nn::Input<2>, nn::Dense<2>>;
}  // namespace

TEST_CASE("state starts with the layers' initial values, and each replica changes its own (spec P19)") {
  Mirrored strategy{2};
  nn::NetworkState<Keeps, float, dist::Cpu> state{strategy};
  const auto seen = strategy.run([&](auto& replica) {
    const float first = state.read(replica)[16];
    return first + state.update(replica, [&](std::span<float> own) {
      own[0] = static_cast<float>(replica.local_index() + 1);
      return own[0];
    });
  });
  CHECK(seen[0] == 1 + 1);
  CHECK(seen[1] == 1 + 2);
  CHECK(state.variable().read(strategy.scope())[0] == 1.5F);
}

TEST_CASE("a copy shared by the replicas becomes the mean of their states (spec G45)") {
  dist::CentralStorage<dist::Cpu> strategy{3};
  nn::NetworkState<Keeps, float, dist::Cpu> state{strategy};
  strategy.run([&](auto& replica) {
    const auto number = static_cast<float>(replica.local_index() + 1);
    CHECK(state.update(replica, [&](std::span<float> own) {
      CHECK(own[16] == 1);
      own[0] = number;
      return number;
    }) == number);
    CHECK(state.read(replica)[0] == 2);
    CHECK(state.read(replica)[16] == 1);
  });
  CHECK(state.variable().read(strategy.scope()).data()[0] == 2);
}

TEST_CASE("a step does not allocate, and every element of a shared copy becomes the mean (spec P19, G45)") {
  dist::CentralStorage<dist::Cpu> strategy{3};
  using Wide = nn::Sequential<nn::Input<100>, nn::BatchNormalization<>>;
  nn::NetworkState<Wide, float, dist::Cpu> state{strategy};
  const auto step = [&](auto& replica) {
    state.update(replica, [&](std::span<float> own) {
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<float>(3 * i * (replica.local_index() + 1));
      return 0;
    });
  };
  strategy.run(step);
  const std::size_t before = allocations;
  strategy.run(step);
  CHECK(allocations == before);
  const auto mean = state.variable().component(strategy.scope(), 0);
  for (std::size_t i = 0; i < mean.size(); ++i) REQUIRE(mean[i] == static_cast<float>(6 * i));
}

TEST_CASE("16-bit networks keep their state in float") {
  CHECK(std::is_same_v<nn::NetworkState<Keeps, dist::Float16, dist::Cpu>::Element, float>);
  CHECK(std::is_same_v<nn::NetworkState<Keeps, double, dist::Cpu>::Element, double>);
}

TEST_CASE("a network without state has no variable") {
  Mirrored strategy{1};
  nn::NetworkState<KeepsNothing, float, dist::Cpu> state{strategy};
  CHECK(std::is_empty_v<decltype(state)>);
  strategy.run([&](auto& replica) {
    CHECK(state.read(replica).empty());
    CHECK(state.update(replica, [](std::span<float> own) { return own.size(); }) == 0);
  });
}
