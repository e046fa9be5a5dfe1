#include <dist/core/reduce_axes.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

using dist::Axes;
using dist::Shape;
using dist::Tensor;

namespace {

/// 0, 1, 2, … reduced along the axes, with the shape of what is left.
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

TEST_CASE("the shape without axes") {
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

TEST_CASE("what was combined before counts") {
  Tensor<double> values{{2}};
  values[0] = 1, values[1] = 2;
  Tensor<double> combined{Shape{}};
  combined[0] = 10;
  dist::reduce_axes(dist::sum, dist::TensorView<const double>{values}, Axes{0}.of(values.shape()), combined.view());
  CHECK(combined[0] == 13);
}

TEST_CASE("floating-point elements are combined in double precision, so that many can be added") {
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

TEST_CASE("a NaN is the minimum and the maximum of its row, and of no other") {
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
