#include <dist/nn/losses/average_loss.hpp>

#include <vector>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE(
    "compute_average_loss divides by the global batch, by default local size times replicas (spec P01, "
    "P02)") {
  Mirrored strategy{2};
  const std::vector<float> losses{1, 2, 3};
  const std::vector<float> weights{1, 0, 2};
  strategy.run([&](auto& replica) {
    const std::span<const float> mine{losses};
    CHECK(nn::compute_average_loss(replica, mine) == 1.0f);  // 6 / (3 * 2)
    CHECK(nn::compute_average_loss(replica, mine, {.global_batch_size = 12}) == 0.5f);
    CHECK(nn::compute_average_loss(replica, mine, {.sample_weight = weights, .global_batch_size = 7}) == 1.0f);
    CHECK(nn::compute_average_loss(replica, mine, {.sample_weight = weights}) == doctest::Approx(7.0 / 6));
    CHECK_THROWS_AS(nn::compute_average_loss(replica, mine, {.global_batch_size = 0}), dist::InvalidArgument);
    CHECK_THROWS_AS(nn::compute_average_loss(replica, mine, {.global_batch_size = 2}), dist::InvalidArgument);
    CHECK(nn::compute_average_loss(replica, mine.first(0), {.global_batch_size = 0}) == 0.0f);
    CHECK(nn::compute_average_loss(replica, mine.first(0)) == 0.0f);
  });
}

TEST_CASE("compute_average_loss requires one sample weight per loss") {
  dist::Default strategy;
  const std::vector<double> losses{1, 2, 3};
  const std::vector<double> weights{1, 2};
  const auto run = [&] {
    return strategy.run([&](auto& replica) {
      return nn::compute_average_loss(replica, std::span<const double>{losses}, {.sample_weight = weights});
    });
  };
  CHECK_THROWS_WITH_AS(
      run(),
      "compute_average_loss got sample weights that do not fit the losses (2 weights for 3 losses). Give one "
      "weight per example, or none.",
      dist::ShapeMismatch);
  const std::vector<double> none;
  const auto run_empty = [&] {
    return strategy.run([&](auto& replica) {
      return nn::compute_average_loss(replica, std::span<const double>{losses}, {.sample_weight = none});
    });
  };
  CHECK_THROWS_AS(run_empty(), dist::ShapeMismatch);
}

TEST_CASE("a regularisation loss is counted once by the sum over the replicas (spec P03)") {
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    Mirrored strategy{replicas};
    const std::vector<double> terms{1, 3, 8};
    const auto one = strategy.run([](auto& replica) { return nn::scale_regularization_loss(replica, 12.0); });
    const auto several = strategy.run(
        [&](auto& replica) { return nn::scale_regularization_loss(replica, std::span<const double>{terms}); });
    CHECK(strategy.reduce(dist::sum, one) == doctest::Approx(12.0));
    CHECK(strategy.reduce(dist::sum, several) == doctest::Approx(12.0));
  }
}

TEST_CASE("compute_average_loss requires the global batch size outside replica functions (spec P01)") {
  Mirrored strategy{2};
  const std::vector<float> losses{1, 2, 3};
  const std::span<const float> all{losses};
  CHECK(nn::compute_average_loss(strategy.scope(), all, {.global_batch_size = 12}) == 0.5f);
  CHECK(nn::compute_average_loss(strategy.scope(), all.first(0), {.global_batch_size = 0}) == 0.0f);
  CHECK_THROWS_WITH_AS(nn::compute_average_loss(strategy.scope(), all, {.global_batch_size = 0}),
                       "The global batch size of a loss is too small (it is 0, and there are 3 examples). Give the "
                       "number of examples of all replicas together, which distribute_dataset divides among them.",
                       dist::InvalidArgument);
  const std::vector<float> weights{1, 0, 2};
  CHECK_THROWS_WITH_AS(
      nn::compute_average_loss(strategy.scope(), all, {.sample_weight = weights}),
      "compute_average_loss was called outside a replica function without a global batch size (the number of examples "
      "of each replica is unknown there). Give .global_batch_size, or call it in a replica function.",
      dist::InvalidArgument);
}

TEST_CASE("a negative global batch size is rejected (spec P01)") {
  Mirrored strategy{2};
  const std::vector<float> losses{1, 2, 3};
  const int examples = -6;
  CHECK_THROWS_AS(
      nn::compute_average_loss(strategy.scope(), std::span<const float>{losses}, {.global_batch_size = examples}),
      dist::InvalidArgument);
}

TEST_CASE("losses may be in mutable memory, as per_example_losses writes them (spec P01, P03)") {
  Mirrored strategy{2};
  std::vector<float> losses{1, 2, 3};
  const std::span<float> all{losses};
  CHECK(nn::compute_average_loss(strategy.scope(), all, {.global_batch_size = 12}) == 0.5f);
  strategy.run([&](auto& replica) {
    CHECK(nn::compute_average_loss(replica, all) == 1.0f);
    CHECK(nn::compute_average_loss(replica, all, {.sample_weight = all, .global_batch_size = 7}) == 2.0f);
    CHECK(nn::scale_regularization_loss(replica, all) == 3.0f);
  });
}
