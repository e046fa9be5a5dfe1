#include <dist/core/shape.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>

using dist::Shape;

TEST_CASE("a default shape is a scalar with one element") {
  constexpr Shape scalar;
  static_assert(scalar.rank() == 0);
  static_assert(scalar.elements() == 1);
  CHECK(scalar.extents().empty());
  CHECK(to_string(scalar) == "[]");
}

TEST_CASE("rank, extents and elements are known at compile time") {
  constexpr Shape shape{64, 28, 28, 3};
  static_assert(shape.rank() == 4);
  static_assert(shape[0] == 64 && shape[3] == 3);
  static_assert(shape.elements() == 64U * 28 * 28 * 3);
  CHECK(shape.extents().size() == 4);
  CHECK(shape.extents()[1] == 28);
  CHECK(to_string(shape) == "[64, 28, 28, 3]");
}

TEST_CASE("a zero extent makes an empty array") {
  CHECK(Shape{0}.elements() == 0);
  CHECK(Shape{3, 0, 5}.elements() == 0);
  CHECK(to_string(Shape{3, 0, 5}) == "[3, 0, 5]");
}

TEST_CASE("a shape is made from a span") {
  const std::array<std::size_t, 3> extents{2, 3, 4};
  CHECK(Shape(std::span<const std::size_t>(extents)) == Shape{2, 3, 4});
  CHECK(Shape(std::span<const std::size_t>{}) == Shape{});
}

TEST_CASE("six axes are supported, seven are rejected") {
  CHECK(Shape{1, 2, 3, 4, 5, 6}.elements() == 720);
  CHECK_THROWS_WITH_AS(
      (Shape{1, 1, 1, 1, 1, 1, 1}),
      "A shape has too many axes (7 given, at most 6 are supported). Merge axes that are never indexed separately.",
      dist::InvalidArgument);
  CHECK_THROWS_AS(Shape({1, 2, 3, 4, 5, 6}).stacked(2), dist::InvalidArgument);
}

TEST_CASE("stacked adds an outermost axis, row removes it") {
  CHECK(Shape{28, 28}.stacked(64) == Shape{64, 28, 28});
  CHECK(Shape{}.stacked(5) == Shape{5});
  CHECK(Shape{64, 28, 28}.row() == Shape{28, 28});
  CHECK(Shape{5}.row() == Shape{});
  CHECK(Shape{}.row() == Shape{});
  CHECK(Shape{2, 3, 4, 5, 6}.stacked(7).row() == Shape{2, 3, 4, 5, 6});
}

TEST_CASE("with_rows changes only the outermost extent") {
  CHECK(Shape{64, 28}.with_rows(3) == Shape{3, 28});
  CHECK(Shape{64}.with_rows(0) == Shape{0});
  CHECK(Shape{}.with_rows(9) == Shape{});
}

TEST_CASE("shapes are equal if rank and extents are") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{2, 3} != Shape{2, 3, 1});
  CHECK(Shape{} != Shape{1});
  CHECK(Shape{0} != Shape{0, 0});
}

TEST_CASE("equality ignores the unused extents of a longer shape") {
  Shape shape{2, 3, 4};
  shape = Shape{2, 3};
  CHECK(shape == Shape{2, 3});
  CHECK(Shape{9, 2, 3}.row() == Shape{2, 3});
}

TEST_CASE("a shape with an overflowing element count is rejected") {
  constexpr std::size_t half = std::size_t{1} << 32;
  CHECK(Shape{half, half - 1}.elements() == half * (half - 1));
  CHECK_THROWS_WITH_AS((Shape{half, half}),
                       "A shape has too many elements (the product of 2 extents exceeds 64 bits). Look for an extent "
                       "that was computed or read incorrectly.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(Shape{half}.stacked(half), dist::InvalidArgument);
  CHECK(Shape{0, half, half}.elements() == 0);
}
