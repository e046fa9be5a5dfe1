#include <dist/context/operand.hpp>

#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

using dist::NumberRange;
using dist::detail::NumbersValue;
using dist::detail::ValuesOf;

namespace {

struct Point {
  float x, y, z;
};
struct Segment {
  Point from, to;
};
struct Mixed {
  float number;
  int count;
};
struct alignas(16) Padded {
  float x, y, z;
};
struct Waves {
  std::complex<double> one, other;
};

/// A matrix with Eigen's interface: column-major, with strides.
struct Matrix {
  std::ptrdiff_t rows, columns, stride;
  std::vector<double> memory;

  double* data() { return memory.data(); }
  const double* data() const { return memory.data(); }
  std::ptrdiff_t size() const { return rows * columns; }
  static std::ptrdiff_t innerStride() { return 1; }
  std::ptrdiff_t outerStride() const { return stride; }
  std::ptrdiff_t innerSize() const { return rows; }
  std::ptrdiff_t outerSize() const { return columns; }
};

/// A matrix that provides its extents.
template <bool row_major>
struct MatrixOf {
  static constexpr bool IsRowMajor = row_major;
  std::vector<double> memory;
  std::ptrdiff_t row_count, column_count;

  const double* data() const { return memory.data(); }
  std::size_t size() const { return memory.size(); }
  std::ptrdiff_t rows() const { return row_count; }
  std::ptrdiff_t cols() const { return column_count; }
};

/// A view with std::mdspan's interface.
struct MultiView {
  int* first;
  std::size_t count;
  bool dense;

  int* data_handle() const { return first; }
  std::size_t size() const { return count; }
  bool is_exhaustive() const { return dense; }
};
/// A view with two axes, and a stride for the first.
struct TwoAxes : MultiView {
  std::size_t columns, row_stride;

  static constexpr std::size_t rank() { return 2; }
  std::size_t extent(std::size_t axis) const { return axis == 0 ? count / columns : columns; }
  std::size_t stride(std::size_t axis) const { return axis == 0 ? row_stride : 1; }
};

static_assert(NumberRange<std::vector<float>> && NumberRange<const std::vector<float>>);
static_assert(NumberRange<std::span<const int>> && NumberRange<std::span<bool, 4>> && NumberRange<float[3]>);
static_assert(NumberRange<dist::TensorView<float>> && NumberRange<Matrix> && NumberRange<MultiView>);
static_assert(NumberRange<std::vector<Point>> && NumberRange<std::vector<std::array<Segment, 2>>>);
static_assert(NumberRange<std::vector<std::complex<float>>>);
// Values, text, and types that are not contiguous or not numbers.
static_assert(!NumberRange<dist::Tensor<float>> && !NumberRange<std::array<int, 2>> && !NumberRange<int>);
static_assert(!NumberRange<std::string> && !NumberRange<std::vector<bool>> && !NumberRange<std::vector<std::string>>);
static_assert(!NumberRange<std::vector<Mixed>> && !NumberRange<std::optional<int>>);
static_assert(!NumberRange<dist::PerReplica<int>>);

static_assert(NumbersValue<Point> && NumbersValue<std::complex<double>> && NumbersValue<std::array<int, 2>>);
static_assert(!NumbersValue<float> && !NumbersValue<Mixed> && !NumbersValue<Padded> && !NumbersValue<std::string>);
static_assert(ValuesOf<Segment>::count == 6 && !ValuesOf<Segment>::is_complex);
static_assert(ValuesOf<Waves>::count == 4 && ValuesOf<Waves>::is_complex);

}  // namespace

TEST_CASE("the numbers of a range are returned in place, for all element types") {
  std::vector<Segment> segments{{{0, 1, 2}, {3, 4, 5}}, {{6, 7, 8}, {9, 10, 11}}};
  const std::span<float> numbers = dist::detail::numbers_in(segments);
  REQUIRE(numbers.size() == 12);
  CHECK(static_cast<void*>(numbers.data()) == segments.data());
  for (std::size_t i = 0; i < 12; ++i) CHECK(numbers[i] == static_cast<float>(i));
  std::complex<double> wave{1, -2};
  const auto parts = dist::detail::numbers_in(wave);
  REQUIRE(parts.size() == 2);
  CHECK(parts[1] == -2);
  CHECK(dist::detail::view_of_numbers(segments).shape() == dist::Shape{2, 6});
  CHECK(dist::detail::view_of_numbers(std::vector<int>(3)).shape() == dist::Shape{3});
}

TEST_CASE("a view with gaps between its elements is refused") {
  Matrix whole{2, 3, 2, std::vector<double>(6)};
  CHECK(dist::detail::numbers_in(whole).size() == 6);
  Matrix block{1, 3, 2, std::vector<double>(6)};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(dist::detail::numbers_in(block)),
      "The elements of a view are not contiguous (there are gaps between its 3 elements). Copy them to an array first.",
      dist::InvalidArgument);
  Matrix column{2, 1, 5, std::vector<double>(5)};
  CHECK(dist::detail::numbers_in(column).size() == 2);
  std::vector<int> memory(4);
  CHECK(dist::detail::numbers_in(std::as_const(memory)).size() == 4);
  MultiView view{memory.data(), 4, true};
  CHECK(dist::detail::numbers_in(view).data() == memory.data());
  view.dense = false;
  CHECK_THROWS_AS(static_cast<void>(dist::detail::numbers_in(view)), dist::InvalidArgument);
}

TEST_CASE("a range with several axes has extents, and must be row-major") {
  using dist::detail::shape_of_range;
  CHECK(shape_of_range(std::vector<float>(6)) == dist::Shape{6});
  CHECK(shape_of_range(MatrixOf<true>{std::vector<double>(6), 2, 3}) == dist::Shape{2, 3});
  CHECK(shape_of_range(MatrixOf<false>{std::vector<double>(6), 6, 1}) == dist::Shape{6});
  CHECK_THROWS_AS(static_cast<void>(shape_of_range(MatrixOf<false>{std::vector<double>(6), 2, 3})),
                  dist::InvalidArgument);
  std::vector<int> memory(6);
  CHECK(shape_of_range(TwoAxes{{memory.data(), 6, true}, 3, 3}) == dist::Shape{2, 3});
  CHECK_THROWS_AS(static_cast<void>(shape_of_range(TwoAxes{{memory.data(), 6, true}, 3, 1})), dist::InvalidArgument);
}
