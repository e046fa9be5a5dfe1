#include <dist/data/rows.hpp>

#include <doctest/doctest.h>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <data/sequences.hpp>

using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::TensorView;
using dist::data::Example;
using dist::data::HasRows;
using dist::data::row_count;
using dist::data::row_of;
using dist::data::RowOf;
using dist::data::rows_of;
using dist::data::RowsOf;
using dist_test::iota;
using dist_test::values;

static_assert(std::is_same_v<RowsOf<Tensor<float>>, TensorView<const float>>);
static_assert(std::is_same_v<RowsOf<TensorView<const float>>, TensorView<const float>>);
static_assert(std::is_same_v<RowsOf<Example<Tensor<float>, Tensor<int>>>,
                             Example<TensorView<const float>, TensorView<const int>>>);
static_assert(std::is_same_v<RowOf<Tensor<int>>, TensorView<const int>>);
static_assert(!HasRows<int> && !HasRows<Example<Tensor<float>, int>>);

using Nested = std::tuple<Tensor<int>, std::pair<Tensor<float>, std::array<TensorView<const int>, 2>>>;
static_assert(std::is_same_v<RowsOf<Nested>,
                             std::tuple<TensorView<const int>,
                                        std::pair<TensorView<const float>, std::array<TensorView<const int>, 2>>>>);
static_assert(
    std::is_same_v<RowOf<std::pair<Tensor<int>, Example<Tensor<int>, Tensor<float>>>>,
                   std::pair<TensorView<const int>, Example<TensorView<const int>, TensorView<const float>>>>);
static_assert(!HasRows<std::tuple<>> && !HasRows<std::tuple<Tensor<int>, int>> &&
              !HasRows<std::pair<int, Tensor<int>>> && !HasRows<std::array<Tensor<int>, 0>> &&
              !HasRows<std::array<int, 2>>);

TEST_CASE("rows are views of the batch") {
  const Example batch{iota<float>({4, 2}), iota<int>({4})};
  CHECK(row_count(batch) == 4);
  const auto middle = rows_of(batch, 1, 2);
  CHECK(middle.x.data() == batch.x.data() + 2);
  CHECK(middle.x.shape() == Shape{2, 2});
  CHECK(values(middle.y) == std::vector<int>{1, 2});
  const auto none = rows_of(batch, 4, 0);
  CHECK(none.x.shape() == Shape{0, 2});
  CHECK(none.y.size() == 0);
  const auto last = row_of(batch, 3);
  CHECK(last.x.shape() == Shape{2});
  CHECK(values(last.x) == std::vector<float>{6, 7});
  CHECK(last.y.shape() == Shape{});
  CHECK(last.y[0] == 3);
}

TEST_CASE("features and labels must have the same number of rows") {
  CHECK_THROWS_WITH_AS(static_cast<void>(row_count(Example{iota<float>({4, 2}), iota<int>({3})})),
                       doctest::Contains("4 features, 3 labels"), ShapeMismatch);
  CHECK_THROWS_WITH_AS(static_cast<void>(row_count(Tensor<int>{Shape{}})), doctest::Contains("A scalar has no rows"),
                       ShapeMismatch);
}

TEST_CASE("structures are divided part by part (spec I30)") {
  const Tensor<int> shared = iota<int>({3, 2});
  const Nested batch{iota<int>({3}), {iota<float>({3, 1}), {shared.view(), shared.view()}}};
  CHECK(row_count(batch) == 3);
  const auto last = rows_of(batch, 1, 2);
  CHECK(std::get<0>(last).data() == std::get<0>(batch).data() + 1);
  CHECK(values(std::get<1>(last).first) == std::vector<float>{1, 2});
  CHECK(values(std::get<1>(last).second[1]) == std::vector<int>{2, 3, 4, 5});
  const auto row = row_of(batch, 2);
  CHECK(std::get<0>(row).shape() == Shape{});
  CHECK(values(std::get<1>(row).second[0]) == std::vector<int>{4, 5});
}

TEST_CASE("the parts of a structure must have the same number of rows") {
  CHECK_THROWS_WITH_AS(static_cast<void>(row_count(std::array{iota<int>({4}), iota<int>({4, 2}), iota<int>({3})})),
                       doctest::Contains("array 0 has 4, array 2 has 3"), ShapeMismatch);
  CHECK_THROWS_WITH_AS(static_cast<void>(row_count(std::tuple{iota<int>({4}), Tensor<float>{Shape{}}})),
                       doctest::Contains("A scalar has no rows"), ShapeMismatch);
}
