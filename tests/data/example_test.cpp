#include <dist/data/example.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using dist::data::Example;

TEST_CASE("an example consists of features and labels") {
  const Example example{1.5F, 2};
  static_assert(std::is_same_v<decltype(example), const Example<float, int>> &&
                std::is_aggregate_v<Example<float, int>>);
  const auto& [features, label] = example;
  CHECK(features == 1.5F);
  CHECK(label == 2);
}
