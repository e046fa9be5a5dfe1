#include <dist/core/axes.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using dist::Axes;
using dist::Shape;

TEST_CASE("axes are counted from 0 and from -1 at the end (spec C09)") {
  const Shape shape{2, 3, 4};
  for (int axis = 0; axis < 3; ++axis) {
    CHECK(Axes::resolve(axis, shape) == static_cast<std::size_t>(axis));
    CHECK(Axes::resolve(axis - 3, shape) == static_cast<std::size_t>(axis));
  }
  const Axes::Chosen one = Axes{-1}.of(shape);
  CHECK((!one[0] && !one[1] && one[2]));
  const Axes::Chosen two = Axes{0, -2, 1}.of(shape);
  CHECK((two[0] && two[1] && !two[2]));
  const Axes::Chosen none = Axes({}).of(shape);
  CHECK((!none[0] && !none[1] && !none[2]));
}

TEST_CASE("axes that a value does not have are refused (spec C09)") {
  CHECK_THROWS_WITH_AS(
      Axes::resolve(3, Shape{2, 3, 4}),
      "Axis 3 is out of range (the value has shape [2, 3, 4], of rank 3). Count axes from 0, or from -1 at "
      "the end.",
      dist::InvalidArgument);
  CHECK_THROWS_AS(Axes::resolve(-4, Shape{2, 3, 4}), dist::InvalidArgument);
  CHECK_THROWS_AS(Axes::resolve(0, Shape{}), dist::InvalidArgument);
  CHECK_THROWS_AS(Axes({0, 5}).of(Shape{2}), dist::InvalidArgument);
  CHECK_THROWS_AS(Axes({0, 1, 2, 3, 4, 5, 0}), dist::InvalidArgument);
}
