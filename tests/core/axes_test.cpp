#include <dist/core/axes.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

using dist::Axes;
using dist::Shape;

TEST_CASE("axes are counted from 0, or backwards from -1 (spec C09)") {
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

TEST_CASE("axes out of range are rejected (spec C09)") {
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

using dist::Tensor;

namespace {

Shape joined(std::vector<Shape> shapes, int axis) { return dist::concatenated_shape("part", shapes, axis); }

}  // namespace

TEST_CASE("concatenated extents add up along the axis (spec C14)") {
  CHECK(joined({{2, 3}, {4, 3}, {0, 3}}, 0) == Shape{6, 3});
  CHECK(joined({{2, 3}, {2, 1}}, 1) == Shape{2, 4});
  CHECK(joined({{2, 3}, {2, 1}}, -1) == Shape{2, 4});
  CHECK(joined({{5}}, 0) == Shape{5});
}

TEST_CASE("scalars and shapes with other extents or ranks are rejected (spec C14)") {
  CHECK_THROWS_WITH_AS(joined({{2, 3}, {2, 3}, {2, 4}}, 0),
                       "The values of part 0 and part 2 cannot be concatenated (shapes [2, 3] and [2, 4] along axis "
                       "0). Give values of the same rank whose extents differ along that axis only.",
                       dist::ShapeMismatch);
  CHECK_THROWS_AS(joined({{2, 3}, {2}}, 0), dist::ShapeMismatch);
  CHECK_THROWS_AS(joined({{2}, {2, 3}}, 0), dist::ShapeMismatch);
  CHECK_THROWS_AS(joined({Shape{}, Shape{}}, 0), dist::ShapeMismatch);
  CHECK_THROWS_AS(joined({{2}, {2}}, 1), dist::InvalidArgument);
}

TEST_CASE("parts are copied to their positions") {
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

namespace {

/// Reduces 0, 1, 2, … along the axes, and checks the remaining shape.
template <class Op>
std::vector<double> reduced(Op op, Shape shape, Axes axes) {
  Tensor<double> values{shape};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Axes::Chosen chosen = axes.of(shape);
  Tensor<double> combined{dist::without_axes(shape, chosen)};
  for (double& element : combined.elements()) element = Op::template identity<double>;
  dist::reduce_axes(op, dist::TensorView<const double>{values}, chosen, combined.view());
  return {combined.elements().begin(), combined.elements().end()};
}

}  // namespace

TEST_CASE("reduced axes are removed from the shape") {
  const Shape shape{2, 3, 4};
  CHECK(dist::without_axes(shape, Axes{1}.of(shape)) == Shape{2, 4});
  CHECK(dist::without_axes(shape, Axes{0, 2}.of(shape)) == Shape{3});
  CHECK(dist::without_axes(shape, Axes{0, 1, 2}.of(shape)) == Shape{});
}

TEST_CASE("elements are combined along the axes") {
  CHECK(reduced(dist::sum, {2, 3}, 0) == std::vector<double>{3, 5, 7});
  CHECK(reduced(dist::sum, {2, 3}, 1) == std::vector<double>{3, 12});
  CHECK(reduced(dist::sum, {2, 3}, {0, 1}) == std::vector<double>{15});
  CHECK(reduced(dist::max, {2, 2, 2}, 1) == std::vector<double>{2, 3, 6, 7});
  CHECK(reduced(dist::min, {2, 2, 2}, {0, 2}) == std::vector<double>{0, 2});
  CHECK(reduced(dist::sum, {3}, Axes({})) == std::vector<double>{0, 1, 2});
  CHECK(reduced(dist::sum, {2, 0, 2}, 1) == std::vector<double>{0, 0, 0, 0});
  CHECK(reduced(dist::sum, {}, Axes({})) == std::vector<double>{0});
}

TEST_CASE("previously combined values are included") {
  Tensor<double> values{{2}};
  values[0] = 1, values[1] = 2;
  Tensor<double> combined{Shape{}};
  combined[0] = 10;
  dist::reduce_axes(dist::sum, dist::TensorView<const double>{values}, Axes{0}.of(values.shape()), combined.view());
  CHECK(combined[0] == 13);
}

TEST_CASE("floating-point elements are combined in double precision") {
  // 2048 + 1 is 2048 in half precision, 2^24 + 1 is 2^24 in single precision.
  Tensor<dist::Float16> values{{3}};
  values[0] = dist::Float16{2048.0f}, values[1] = dist::Float16{1.0f}, values[2] = dist::Float16{1.0f};
  Tensor<double> combined{Shape{}};
  combined[0] = 0;
  dist::reduce_axes(dist::sum, dist::TensorView<const dist::Float16>{values}, Axes{0}.of(values.shape()),
                    combined.view());
  CHECK(combined[0] == 2050);
  Tensor<float> floats{{2}};
  floats[0] = 16777216, floats[1] = 1;
  combined[0] = 0;
  dist::reduce_axes(dist::sum, dist::TensorView<const float>{floats}, Axes{0}.of(floats.shape()), combined.view());
  CHECK(combined[0] == 16777217);
}

TEST_CASE("a NaN is the minimum and maximum of its row only") {
  for (std::size_t at = 0; at < 3; ++at) {
    Tensor<float> values{{2, 3}};
    values[at] = std::numeric_limits<float>::quiet_NaN();
    const Axes::Chosen chosen = Axes{1}.of(values.shape());
    const auto check = [&]<class Op>(Op op) {
      Tensor<double> combined{{2}};
      for (double& element : combined.elements()) element = Op::template identity<double>;
      dist::reduce_axes(op, dist::TensorView<const float>{values}, chosen, combined.view());
      CHECK(std::isnan(combined[0]));
      CHECK(combined[1] == 0);
    };
    check(dist::max);
    check(dist::min);
  }
}
