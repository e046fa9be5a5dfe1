#include <dist/core/static_shape.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using dist::Shape;
using dist::StaticShape;

TEST_CASE("a static shape is known at compile time") {
  using Image = StaticShape<28, 14, 3>;
  static_assert(Image::rank == 3);
  static_assert(Image::elements == 28 * 14 * 3);
  static_assert(Image::extent<0> == 28 && Image::extent<1> == 14 && Image::extent<2> == 3);
  static_assert(Image::last_extent == 3);
  static_assert(Image::shape() == Shape{28, 14, 3});
  static_assert(std::is_empty_v<Image>);
  CHECK(to_string(Image::shape()) == "[28, 14, 3]");
}

TEST_CASE("a static shape without extents is a scalar") {
  static_assert(StaticShape<>::rank == 0);
  static_assert(StaticShape<>::elements == 1);
  static_assert(StaticShape<>::last_extent == 1);
  CHECK(StaticShape<>::shape() == Shape{});
}

TEST_CASE("FirstExtentsAnd takes the first extents of a shape and one more") {
  using Image = StaticShape<28, 14, 3>;
  static_assert(std::is_same_v<dist::FirstExtentsAnd<Image, 2, 5>, StaticShape<28, 14, 5>>);
  static_assert(std::is_same_v<dist::FirstExtentsAnd<Image, 3, 5>, StaticShape<28, 14, 3, 5>>);
  static_assert(std::is_same_v<dist::FirstExtentsAnd<StaticShape<>, 0, 5>, StaticShape<5>>);
}

TEST_CASE("a zero extent makes a static shape empty") {
  static_assert(StaticShape<4, 0>::elements == 0);
  CHECK(StaticShape<4, 0>::shape().elements() == 0);
}

TEST_CASE("elements are counted in std::size_t") {
  static_assert(StaticShape<65536, 65536, 4>::elements == std::size_t{1} << 34);
  CHECK(StaticShape<65536, 65536, 4>::shape().elements() == std::size_t{1} << 34);
}
