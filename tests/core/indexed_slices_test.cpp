#include <dist/core/indexed_slices.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

using dist::IndexedSlices;
using dist::IndexedSlicesView;
using dist::Shape;

TEST_CASE("slices keep the order and repetitions of their indices (spec H10)") {
  IndexedSlices<float> slices(3, {10, 2});
  CHECK(slices.rows() == 3);
  CHECK(slices.values().shape() == Shape{3, 2});
  const std::vector<std::int64_t> indices{7, 0, 7};
  for (std::size_t row = 0; row < 3; ++row) slices.indices()[row] = indices[row];
  for (std::size_t i = 0; i < 6; ++i) slices.values()[i] = static_cast<float>(i);
  const IndexedSlicesView<float> view = slices.view();
  const IndexedSlices<float> copy{view};
  CHECK(std::vector<std::int64_t>(copy.indices().begin(), copy.indices().end()) == indices);
  CHECK(copy.values()(std::size_t{2}, std::size_t{1}) == 5);
  CHECK(copy.dense_shape() == Shape{10, 2});
  CHECK(IndexedSlices<float>(0, {10, 2}).view().rows() == 0);
}

TEST_CASE("indices and values that do not match each other or the array are rejected") {
  const dist::Tensor<float> values{{2, 3}};
  const std::vector<std::int64_t> two{0, 1};
  const std::vector<std::int64_t> three{0, 1, 2};
  CHECK_NOTHROW(IndexedSlicesView<float>(two, values, {5, 3}));
  CHECK_THROWS_WITH_AS(
      IndexedSlicesView<float>(three, values, {5, 3}),
      "Indexed slices do not fit together (3 indices and values of shape [2, 3] for an array of shape [5, "
      "3]). Give one row of values, of the array's row shape, for each index.",
      dist::ShapeMismatch);
  CHECK_THROWS_AS(IndexedSlicesView<float>(two, values, {5, 4}), dist::ShapeMismatch);
  CHECK_THROWS_AS(IndexedSlicesView<float>(two, values, Shape{}), dist::ShapeMismatch);
  CHECK_THROWS_AS(IndexedSlices<float>(1, Shape{}), dist::ShapeMismatch);
  for (const std::int64_t index : {std::int64_t{-1}, std::int64_t{5}}) {
    const std::vector<std::int64_t> wrong{0, index};
    CHECK_THROWS_AS(IndexedSlicesView<float>(wrong, values, {5, 3}), dist::InvalidArgument);
  }
}

TEST_CASE("slices are made of values, compared and printed") {
  const IndexedSlices<float> slices{{3, 0}, {{2, 2}, {1, 2, 3, 4}}, {10, 2}};
  CHECK(slices.indices()[0] == 3);
  CHECK(slices.values()(1, 0) == 3);
  CHECK(slices == IndexedSlices<float>{slices.view()});
  CHECK(slices != IndexedSlices<float>{{0, 3}, {{2, 2}, {1, 2, 3, 4}}, {10, 2}});
  CHECK(slices != IndexedSlices<float>{{3, 0}, {{2, 2}, {1, 2, 3, 4}}, {11, 2}});
  CHECK(to_string(slices) == "rows [3, 0] of [10, 2]: [[1, 2], [3, 4]]");
  CHECK(IndexedSlices<float>{}.rows() == 0);
  CHECK_THROWS_AS((IndexedSlices<float>{{3}, {{2, 2}, {1, 2, 3, 4}}, {10, 2}}), dist::ShapeMismatch);
  CHECK_THROWS_AS((IndexedSlices<float>{{10}, {{1, 1}, {1}}, {10, 1}}), dist::InvalidArgument);
}
