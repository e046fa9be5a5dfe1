// Tests with the real Fashion-MNIST files.
#include <dist/data/fashion_mnist.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

#include <data/sequences.hpp>
#include <support/needs_fashion_mnist.hpp>

using dist::data::Cardinality;
using dist::data::fashion_mnist;
using dist::data::Split;

namespace {

const testing::NeedsFashionMnist needs_fashion_mnist;

std::array<int, 10> per_class(const auto& dataset) {
  std::array<int, 10> counts{};
  for (const auto& example : dataset.epoch(0)) ++counts[static_cast<std::size_t>(example.y[0])];
  return counts;
}

}  // namespace

TEST_CASE("the real test set has 10000 images, 1000 per class") {
  const auto dataset = fashion_mnist(Split::test);
  CHECK(dataset.cardinality() == Cardinality::known(10'000));
  std::array<int, 10> thousand{};
  thousand.fill(1000);
  CHECK(per_class(dataset) == thousand);
  const auto examples = dist_test::collect(dataset);
  std::vector<int> first;
  for (std::size_t i = 0; i < 10; ++i) first.push_back(examples[i].y[0]);
  CHECK(first == std::vector<int>{9, 2, 1, 1, 6, 1, 4, 6, 5, 7});
}

TEST_CASE("the real training set has 60000 images, 6000 per class, with mean 0.2860") {
  const auto dataset = fashion_mnist(Split::train);
  CHECK(dataset.cardinality() == Cardinality::known(60'000));
  std::array<int, 10> six_thousand{};
  six_thousand.fill(6000);
  CHECK(per_class(dataset) == six_thousand);
  double sum = 0;
  float largest = 0;
  for (const auto& example : dataset.epoch(0))
    for (const float pixel : example.x.elements()) {
      sum += static_cast<double>(pixel);
      largest = pixel > largest ? pixel : largest;
    }
  // The published mean of the training images.
  CHECK(sum / (60'000.0 * 784) == doctest::Approx(0.2860).epsilon(0.0005));
  CHECK(largest == 1.0F);
}
