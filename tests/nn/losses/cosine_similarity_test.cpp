#include <dist/nn/losses/cosine_similarity.hpp>

#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

TEST_CASE("values and gradients agree with Keras, and gradients with finite differences") {
  keras_losses::compare(nn::CosineSimilarity{}, keras_losses::cosine_similarity);
}

TEST_CASE("equal directions give -1, opposite ones 1, and zero vectors 0 without NaN") {
  const nn::CosineSimilarity loss;
  const auto of = [&](std::vector<float> outputs, std::vector<float> targets) {
    std::vector<float> gradient(2, 7);
    const std::span<const float> one{outputs}, other{targets};
    const float value = loss.per_example(nn::row_of(one), nn::row_of(other));
    CHECK(value == loss.per_example(nn::row_of(one), nn::row_of(other), 1.0F, nn::row_of(std::span{gradient})));
    if (outputs[0] == 0) CHECK(gradient == std::vector<float>{0, 0});
    if (targets[0] == 0) CHECK(gradient == std::vector<float>{0, 0});
    return value;
  };
  CHECK(of({3, 4}, {6, 8}) == doctest::Approx(-1));
  CHECK(of({3, 4}, {-6, -8}) == doctest::Approx(1));
  CHECK(of({0, 0}, {6, 8}) == 0);
  CHECK(of({3, 4}, {0, 0}) == 0);
}
