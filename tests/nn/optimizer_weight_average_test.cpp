#include <dist/nn/optimizer.hpp>

#include <cstddef>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("weights become the average, from each replica's own slot or from all shares") {
  Mirrored strategy{2};
  auto weights = strategy.variable<float>(dist::Shape{4}, 1.0f, "weights");
  const auto average = strategy.variable<float, dist::OnRead, dist::Sum>(dist::Shape{4}, 0.0f, "average");
  for (std::size_t local = 0; local < 2; ++local)
    for (std::size_t i = 0; i < 4; ++i)
      average.component(strategy.scope(), local)[i] = static_cast<float>(10 * local + i);
  nn::take_average(strategy.scope(), weights, average, true);
  for (std::size_t local = 0; local < 2; ++local)
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(weights.component(strategy.scope(), local)[i] == static_cast<float>(10 * local + i));
  nn::take_average(strategy.scope(), weights, average, false);
  for (std::size_t local = 0; local < 2; ++local)
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(weights.component(strategy.scope(), local)[i] == static_cast<float>(10 + 2 * i));
}
