#include <dist/train/class_weights.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

#include <dist/nn/losses/categorical_crossentropy.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;
using nn::detail::ClassWeights;

namespace {

dist::Tensor<std::int32_t> labels(std::vector<std::int32_t> values) {
  dist::Tensor<std::int32_t> all{{values.size()}};
  for (std::size_t row = 0; row < values.size(); ++row) all[row] = values[row];
  return all;
}
/// Returns the weights of the examples of a loss; empty if they have none.
template <class L = nn::SparseCategoricalCrossentropy>
std::vector<float> weights_for(ClassWeights& of, const L& loss, dist::Shape outputs, const auto& targets,
                               const auto&... given) {
  std::vector<float> all;
  of.weigh(
      0, loss, dist::Tensor<float>{outputs}, targets,
      [&](const auto& of_rows) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(of_rows)>, nn::Unweighted>)
          for (std::size_t row = 0; row < of_rows.size(); ++row) all.push_back(of_rows[row]);
      },
      given...);
  return all;
}
/// Returns the weights for labels, or one-hot rows, of three classes.
std::vector<float> weights(ClassWeights& of, const auto& targets, const auto&... given) {
  const dist::Shape outputs{targets.rows(), 3};
  if (targets.shape().rank() > 1 && targets.shape()[1] > 1)
    return weights_for(of, nn::CategoricalCrossentropy{}, outputs, targets, given...);
  return weights_for(of, nn::SparseCategoricalCrossentropy{}, outputs, targets, given...);
}

}  // namespace

TEST_CASE("the weight of a row is the weight of its class, times its sample weight") {
  ClassWeights of{1};
  dist::Tensor<float> given{{3}};
  for (std::size_t row = 0; row < 3; ++row) given[row] = static_cast<float>(row + 1);
  CHECK(weights(of, labels({0, 1, 0})).empty());
  CHECK(weights(of, labels({0, 1, 0}), given) == std::vector<float>{1, 2, 3});
  of.set({0.5F, 2});
  CHECK(weights(of, labels({0, 1, 0})) == std::vector<float>{0.5F, 2, 0.5F});
  CHECK(weights(of, labels({0, 1, 0}), given) == std::vector<float>{0.5F, 4, 1.5F});
  CHECK(weights(of, labels({1})) == std::vector<float>{2});  // the last batch is short
}

TEST_CASE("the class of a one-hot row is the column of its 1") {
  ClassWeights of{1};
  of.set({0.5F, 2, 8});
  const auto rows = [](std::vector<std::int32_t> numbers) {
    return dist::Tensor<std::int32_t>{{numbers.size() / 3, 3}, numbers};
  };
  CHECK(weights(of, rows({0, 0, 1, 1, 0, 0, 0, 1, 0})) == std::vector<float>{8, 0.5F, 2});
  using Lists = std::vector<std::vector<std::int32_t>>;
  for (const auto& no_class : Lists{{0, 0, 0}, {1, 0, 1}, {1, 2, 0}, {2, 0, 0}})
    CHECK_THROWS_AS(weights(of, rows(no_class)), dist::InvalidArgument);
  CHECK_THROWS_AS(weights(of, dist::Tensor<std::int32_t>{{1, 4}, {0, 0, 0, 1}}),
                  dist::InvalidArgument);  // without a weight
  CHECK(weights(of, dist::Tensor<std::int32_t>{{2, 1}, {2, 0}}) == std::vector<float>{8, 0.5F});
}

TEST_CASE("targets other than classes with a weight are rejected") {
  ClassWeights of{1};
  of.set({1, 1});
  CHECK_THROWS_AS(weights(of, labels({0, 2})), dist::InvalidArgument);
  CHECK_THROWS_AS(weights(of, labels({-1})), dist::InvalidArgument);
  CHECK_THROWS_AS(weights(of, dist::Tensor<float>{{2}}), dist::InvalidArgument);
}

TEST_CASE("labels of elements have one weight each, and sample weights of rows or of elements") {
  ClassWeights of{1};
  of.set({0.5F, 2, 8});
  const nn::SparseCategoricalCrossentropy loss{.ignore_class = -1};
  const dist::Shape outputs{2, 3, 3};
  const dist::Tensor<std::int32_t> of_elements{{2, 3}, {0, 1, 2, 2, -1, 1}};
  CHECK(weights_for(of, loss, outputs, of_elements) == std::vector<float>{0.5F, 2, 8, 8, 0, 2});
  const dist::Tensor<float> of_rows{{2}, {1, 10}}, of_each{{2, 3}, {1, 2, 3, 4, 5, 6}};
  CHECK(weights_for(of, loss, outputs, of_elements, of_rows) == std::vector<float>{0.5F, 2, 8, 80, 0, 20});
  CHECK(weights_for(of, loss, outputs, of_elements, of_each) == std::vector<float>{0.5F, 4, 24, 32, 0, 12});
  const dist::Tensor<std::int32_t> one_hot{{1, 2, 3}, {0, 0, 1, 0, 1, 0}};
  CHECK(weights_for(of, nn::CategoricalCrossentropy{}, {1, 2, 3}, one_hot) == std::vector<float>{8, 2});
}
