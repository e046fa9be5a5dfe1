#include <dist/core/slicing.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>
#include <variable/tensorflow/slices.hpp>

using dist::ellipsis;
using dist::new_axis;
using dist::Range;
using dist::Shape;
using dist::Tensor;
using support::what_throws;
namespace fixture = tensorflow_slices;

namespace {

Tensor<int> counted(const Shape& shape) {
  Tensor<int> tensor{shape};
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<int>(i);
  return tensor;
}
const Tensor<int> table = counted({7, 3, 2});

template <class... Parts>
void check(const fixture::Sliced& expected, const Parts&... parts) {
  CHECK(dist::sliced(table.view(), parts...) == Tensor<int>{expected.shape, expected.elements});
}
template <class... Parts>
std::string message(const Parts&... parts) {
  return what_throws<dist::InvalidArgument>([&] { static_cast<void>(dist::sliced(table.view(), parts...)); });
}

}  // namespace

TEST_CASE("a range selects the same indices as NumPy for all starts, ends and steps (spec K09)") {
  const Tensor<int> three = counted({3});
  std::vector<std::optional<std::ptrdiff_t>> ends{std::nullopt};
  for (std::ptrdiff_t end = -5; end <= 5; ++end) ends.emplace_back(end);
  std::size_t next = 0, wrong = 0;
  for (const auto& begin : ends)
    for (const auto& end : ends)
      for (const std::ptrdiff_t step : {1, 2, -1, -2}) {
        std::string chosen;
        const Tensor<int> slice = dist::sliced(three.view(), Range{begin, end, step});
        for (const int element : slice.elements()) chosen += std::to_string(element);
        wrong += chosen != fixture::chosen[next++];
      }
  CHECK(next == std::size(fixture::chosen));
  CHECK(wrong == 0);
}

TEST_CASE("indices, ranges, an ellipsis and new axes select the same elements as NumPy (spec K09)") {
  check(fixture::row, -2);
  check(fixture::element, 6, 1U, std::int8_t{-1});
  check(fixture::rows, Range{1, 6, 2});
  check(fixture::backwards, Range{.step = -3});
  check(fixture::columns, ellipsis, 1);
  check(fixture::middle, Range{}, 2);
  check(fixture::new_axes, new_axis, Range{2, 4}, ellipsis, new_axis, Range{.step = -1});
  check(fixture::none, Range{5, 2});
  check(fixture::past_the_end, Range{-100, 100}, Range{1, 100});
  CHECK(dist::sliced(table.view()) == table);
}

TEST_CASE("slices with extreme steps terminate") {
  constexpr auto most = std::numeric_limits<std::ptrdiff_t>::max();
  constexpr auto least = std::numeric_limits<std::ptrdiff_t>::min();
  const Tensor<int> three = counted({3});
  CHECK(dist::sliced(three.view(), Range{.step = most}) == Tensor<int>{{1}, {0}});
  CHECK(dist::sliced(three.view(), Range{.step = least}) == Tensor<int>{{1}, {2}});
  CHECK(dist::sliced(three.view(), Range{least, most}) == three);
}

TEST_CASE("a mask selects elements or rows (spec K09)") {
  const bool rows[] = {true, false, false, true, false, true, false};
  CHECK(dist::masked(table.view(), {rows, Shape{7}}) == Tensor<int>{fixture::masked.shape, fixture::masked.elements});
  Tensor<bool> pairs{{7, 3}};
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = table[2 * i] % 4 == 0;
  CHECK(dist::masked(table.view(), pairs) == Tensor<int>{fixture::masked_pairs.shape, fixture::masked_pairs.elements});
  CHECK_THROWS_WITH_AS(static_cast<void>(dist::masked(table.view(), {rows, Shape{6}})),
                       "A mask does not fit a tensor (the mask has shape [6], and the value that it selects from has "
                       "shape [7, 3, 2]). Give a mask whose extents are the first extents of the shape, at least one.",
                       dist::ShapeMismatch);
  CHECK_THROWS_AS(static_cast<void>(dist::masked(table.view(), {rows, Shape{}})), dist::ShapeMismatch);
}

TEST_CASE("an index out of range is rejected (spec K09)") {
  CHECK(message(7) ==
        "Slice index 7 of axis 0 of a tensor is out of range (the shape is [7, 3, 2]). Give an index from 0 to the "
        "extent - 1, or from -1 to the negative extent, counted from the end.");
  CHECK(message(0, -4).starts_with("Slice index -4 of axis 1 of a tensor is out of range"));
  CHECK(message(std::numeric_limits<std::uint64_t>::max()).starts_with("Slice index 9223372036854775807 of axis 0"));
}

TEST_CASE("a step of 0 and conflicting parts are rejected (spec K09)") {
  CHECK(message(Range{}, Range{.step = 0}) ==
        "The step of a slice of axis 1 of a tensor is 0 (the slice would never end). Give a positive step, or a "
        "negative one to go backwards.");
  CHECK(message(0, 0, 0, 0) ==
        "A slice of a tensor names 4 axes (the shape is [7, 3, 2]). Name at most as many axes as the shape has.");
  CHECK(message(ellipsis, 0, ellipsis).starts_with("A slice of a tensor has two ellipses"));
  CHECK(message(new_axis, new_axis, new_axis, new_axis).starts_with("A slice of a tensor has too many axes"));
}
