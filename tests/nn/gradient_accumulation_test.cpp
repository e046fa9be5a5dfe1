#include <dist/nn/gradient_accumulation.hpp>

#include <cstddef>
#include <span>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("the last call of every update returns the mean gradient of the calls on each replica") {
  constexpr std::size_t count = 101;
  for (const std::int64_t steps : {2, 3}) {
    Mirrored strategy{2};
    const auto gradients = strategy.buffer<float>(dist::Shape{count}, "gradients");
    const nn::GradientAccumulation<Mirrored, float> accumulation{strategy, count, "Test"};
    for (int update = 0; update < 3; ++update)
      for (std::int64_t call = 0; call < steps; ++call)
        strategy.run([&](auto& replica) {
          const std::span<float> gradient = gradients.component(replica);
          const auto number = static_cast<float>(10 * replica.local_index() + static_cast<std::size_t>(update));
          for (std::size_t i = 0; i < count; ++i)
            gradient[i] = number + static_cast<float>(i) + static_cast<float>(call);
          const auto mean = accumulation.add(replica, gradient, steps);
          REQUIRE(mean.has_value() == (call + 1 == steps));
          if (!mean) return;
          CHECK(mean->data() != gradient.data());
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < count; ++i)
            wrong += (*mean)[i] != number + static_cast<float>(i) + static_cast<float>(steps - 1) / 2;
          CHECK(wrong == 0);
        });
  }
}

TEST_CASE("accumulation of one step returns the gradient without a copy") {
  dist::Default strategy;
  const nn::GradientAccumulation<dist::Default, double> accumulation{strategy, 3, "Test"};
  strategy.run([&](auto& replica) {
    double values[] = {1, 2, 3};
    const auto mean = accumulation.add(replica, std::span<double>{values}, 1);
    REQUIRE(mean.has_value());
    CHECK(mean->data() == values);
  });
}
