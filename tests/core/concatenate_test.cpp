#include <dist/core/concatenate.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

using dist::Shape;
using dist::Tensor;

namespace {

Shape joined(std::vector<Shape> shapes, int axis) { return dist::concatenated_shape("part", shapes, axis); }

}  // namespace

TEST_CASE("shapes add up along the axis (spec C14)") {
  CHECK(joined({{2, 3}, {4, 3}, {0, 3}}, 0) == Shape{6, 3});
  CHECK(joined({{2, 3}, {2, 1}}, 1) == Shape{2, 4});
  CHECK(joined({{2, 3}, {2, 1}}, -1) == Shape{2, 4});
  CHECK(joined({{5}}, 0) == Shape{5});
}

TEST_CASE("shapes that differ elsewhere, in rank, or that are scalars are refused (spec C14)") {
  CHECK_THROWS_WITH_AS(
      joined({{2, 3}, {2, 3}, {2, 4}}, 0),
      "The values of part 0 and part 2 cannot be concatenated (shapes [2, 3] and [2, 4] along axis 0). Give "
      "values of one rank whose extents differ along that axis only.",
      dist::ShapeMismatch);
  CHECK_THROWS_AS(joined({{2, 3}, {2}}, 0), dist::ShapeMismatch);
  CHECK_THROWS_AS(joined({{2}, {2, 3}}, 0), dist::ShapeMismatch);
  CHECK_THROWS_AS(joined({Shape{}, Shape{}}, 0), dist::ShapeMismatch);
  CHECK_THROWS_AS(joined({{2}, {2}}, 1), dist::InvalidArgument);
}

TEST_CASE("parts are copied to their places") {
  Tensor<int> left{{2, 1, 2}};
  Tensor<int> right{{2, 2, 2}};
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int>(i);
  for (std::size_t i = 0; i < right.size(); ++i) right[i] = 10 + static_cast<int>(i);
  Tensor<int> whole{{2, 3, 2}};
  dist::place_part(dist::TensorView<const int>{left}, 1, 0, whole.view());
  dist::place_part(dist::TensorView<const int>{right}, 1, 1, whole.view());
  const std::vector<int> expected{0, 1, 10, 11, 12, 13, 2, 3, 14, 15, 16, 17};
  CHECK(std::vector<int>(whole.elements().begin(), whole.elements().end()) == expected);
  const Tensor<int> empty{{2, 0, 2}};
  dist::place_part(dist::TensorView<const int>{empty}, 1, 3, whole.view());
  CHECK(std::vector<int>(whole.elements().begin(), whole.elements().end()) == expected);
}
