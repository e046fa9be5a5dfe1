#include <dist/nn/losses/reduced.hpp>

#include <vector>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/nn/losses/average_loss.hpp>
#include <dist/nn/losses/regression.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

struct Outputs {
  dist::TensorView<const double> values;
  dist::TensorView<double> gradient;
};

/// Rows 0 to 5, with their index as value.
dist::Tensor<double> rows() {
  dist::Tensor<double> tensor{dist::Shape{6, 1}};
  for (std::size_t i = 0; i < 6; ++i) tensor[i] = static_cast<double>(i);
  return tensor;
}

}  // namespace

TEST_CASE("Sum is not scaled (spec P04, P05)") {
  for (const std::size_t replicas : {1U, 2U, 3U}) {
    Mirrored strategy{replicas};
    auto outputs = rows();
    dist::Tensor<double> targets{dist::Shape{6, 1}};
    dist::Tensor<double> gradient{dist::Shape{6, 1}};
    const nn::Reduced loss{nn::MeanSquaredError{}, nn::Reduction::Sum{}};
    const auto values = strategy.run([&](auto& replica) {
      const dist::IndexRange mine = replica.shard(6);
      const auto computed = loss(
          replica, Outputs{outputs.view().rows(mine.begin, mine.size()), gradient.view().rows(mine.begin, mine.size())},
          targets.view().rows(mine.begin, mine.size()));
      CHECK(computed.examples() == mine.size());
      return computed.value();
    });
    CHECK(strategy.reduce(dist::sum, values) == 0.0 + 1 + 4 + 9 + 16 + 25);
    for (std::size_t i = 0; i < 6; ++i) CHECK(gradient[i] == 2.0 * static_cast<double>(i));
  }
}

TEST_CASE("Sum takes sample weights") {
  dist::Default strategy;
  auto outputs = rows();
  dist::Tensor<double> targets{dist::Shape{6, 1}};
  dist::Tensor<double> gradient{dist::Shape{6, 1}};
  dist::Tensor<float> weights{dist::Shape{6}};
  for (std::size_t i = 0; i < 6; ++i) weights[i] = i < 3 ? 0.0f : 2.0f;
  const nn::Reduced loss{nn::MeanSquaredError{}, nn::Reduction::Sum{}};
  const double value = strategy.run([&](auto& replica) {
    return loss(replica, Outputs{outputs.view(), gradient.view()}, targets, weights).value();
  });
  CHECK(value == 2.0 * (9 + 16 + 25));
  CHECK(gradient[2] == 0.0);
  CHECK(gradient[5] == 20.0);
}

TEST_CASE("None returns one loss per example, as input of compute_average_loss (spec P01, P04)") {
  Mirrored strategy{2};
  auto outputs = rows();
  dist::Tensor<double> targets{dist::Shape{6, 1}};
  const nn::Reduced loss{nn::MeanSquaredError{}, nn::Reduction::None{}};
  const auto means = strategy.run([&](auto& replica) {
    const dist::IndexRange mine = replica.shard(6);
    std::vector<double> losses(mine.size());
    loss(replica, outputs.view().rows(mine.begin, mine.size()), targets.view().rows(mine.begin, mine.size()),
         std::span<double>{losses});
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const auto row = static_cast<double>(mine.begin + i);
      CHECK(losses[i] == row * row);
    }
    return nn::compute_average_loss(replica, std::span<const double>{losses}, {.global_batch_size = 6});
  });
  CHECK(strategy.reduce(dist::sum, means) == doctest::Approx(55.0 / 6));
}

TEST_CASE("a destination for losses of the wrong size is rejected") {
  dist::Default strategy;
  auto outputs = rows();
  std::vector<double> losses(5);
  const nn::Reduced loss{nn::MeanSquaredError{}, nn::Reduction::None{}};
  const auto run = [&] {
    strategy.run([&](auto& replica) { loss(replica, outputs, outputs, std::span<double>{losses}); });
  };
  CHECK_THROWS_WITH_AS(
      run(),
      "mean_squared_error got memory for losses that does not fit the outputs (5 elements for 6 rows). "
      "Give one element per example.",
      dist::ShapeMismatch);
}
