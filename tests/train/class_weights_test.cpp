#include <dist/train/class_weights.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

using dist::nn::detail::ClassWeights;

namespace {

dist::Tensor<std::int32_t> labels(std::vector<std::int32_t> values) {
  dist::Tensor<std::int32_t> all{{values.size()}};
  for (std::size_t row = 0; row < values.size(); ++row) all[row] = values[row];
  return all;
}
/// Returns the weights of rows; empty if they have none.
std::vector<float> weights(ClassWeights& of, const auto& targets, const auto&... given) {
  std::vector<float> all;
  of.weigh(
      0, targets,
      [&](const auto& of_rows) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(of_rows)>, dist::nn::Unweighted>)
          for (std::size_t row = 0; row < of_rows.size(); ++row) all.push_back(of_rows[row]);
      },
      given...);
  return all;
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
