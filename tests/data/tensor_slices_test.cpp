#include <dist/data/tensor_slices.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <data/sequences.hpp>

using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::data::Cardinality;
using dist::data::tensor_slices;
using dist_test::collect;
using dist_test::iota;
using dist_test::values;

TEST_CASE("tensor_slices returns the rows of an array as views, which copies of the dataset share") {
  const auto dataset = tensor_slices(iota<float>({3, 2}));
  static_assert(!dist::data::is_batched<decltype(dataset)>);
  CHECK(dataset.cardinality() == Cardinality::known(3));
  const auto rows = collect(dataset);
  REQUIRE(rows.size() == 3);
  CHECK(rows[2].shape() == Shape{2});
  CHECK(values(rows[2]) == std::vector<float>{4, 5});
  CHECK(rows[1].data() == rows[0].data() + 2);
  const auto copy = dataset;
  CHECK(collect(copy)[0].data() == rows[0].data());
}

TEST_CASE("the rows of an array of rank 1 are scalars") {
  const auto dataset = tensor_slices(iota<int>({2}));
  const auto rows = collect(dataset);
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].shape() == Shape{});
  CHECK(rows[1][0] == 1);
}

TEST_CASE("tensor_slices combines features and labels") {
  const auto dataset = tensor_slices(iota<float>({3, 2}), iota<int>({3}));
  int expected = 0;
  for (const auto& [x, y] : dataset.epoch(0)) {
    CHECK(x[0] == static_cast<float>(2 * expected));
    CHECK(y[0] == expected++);
  }
  CHECK(expected == 3);
}

TEST_CASE("arrays of different length, and arrays without rows, are rejected") {
  CHECK_THROWS_WITH_AS(static_cast<void>(tensor_slices(iota<float>({3, 2}), iota<int>({4}))),
                       doctest::Contains("3 features, 4 labels"), ShapeMismatch);
  CHECK_THROWS_AS(static_cast<void>(tensor_slices(Tensor<float>{Shape{}})), ShapeMismatch);
  CHECK(collect(tensor_slices(Tensor<float>{Shape{0, 5}})).empty());
}
