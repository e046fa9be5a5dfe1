#include <dist/data/batch.hpp>

#include <doctest/doctest.h>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/map.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <support/allocations.hpp>

using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::TensorView;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::Example;
using dist::data::tensor_slices;
using dist::data::unbatch;
using dist_test::collect;
using dist_test::Counting;
using dist_test::iota;
using dist_test::values;

TEST_CASE("unbatch undoes batch") {
  const auto numbers = Counting{5} | batch(2) | unbatch();
  static_assert(std::is_same_v<decltype(numbers)::Element, Tensor<int>>);
  std::vector<int> all;
  for (const Tensor<int>& number : numbers.epoch(0)) {
    CHECK(number.shape() == Shape{});
    all.push_back(number[0]);
  }
  CHECK(all == std::vector<int>{0, 1, 2, 3, 4});

  const auto rows = collect(tensor_slices(iota<float>({3, 2})) | batch(2) | unbatch());
  REQUIRE(rows.size() == 3);
  CHECK(rows[2].shape() == Shape{2});
  CHECK(values(rows[2]) == std::vector<float>{4, 5});
  static_assert(!dist::data::is_batched<decltype(numbers)>);
}

TEST_CASE("unbatch and batch regroup rows into batches of another size") {
  const auto regrouped = collect(tensor_slices(iota<int>({5, 1}), iota<float>({5})) | batch(2) | unbatch() | batch(3));
  REQUIRE(regrouped.size() == 2);
  CHECK(values(regrouped[0].x) == std::vector<int>{0, 1, 2});
  CHECK(values(regrouped[1].y) == std::vector<float>{3, 4});
  CHECK(regrouped[1].x.shape() == Shape{2, 1});
}

TEST_CASE("unbatch splits tuples, pairs and arrays of batches (spec I30)") {
  using Numbers = Tensor<int>;
  const auto tuples = Counting{4} | batch(2) | dist::data::map([](const Numbers& rows) {
                        return std::tuple{rows, std::pair{rows, std::array{rows, rows}}};
                      });
  const auto rows = collect(tuples | unbatch());
  REQUIRE(rows.size() == 4);
  CHECK(std::get<0>(rows[3])[0] == 3);
  CHECK(std::get<1>(rows[2]).first[0] == 2);
  CHECK(std::get<1>(rows[1]).second[1][0] == 1);
}

TEST_CASE("rows of views are views") {
  const auto rows = tensor_slices(iota<int>({2, 3})) | unbatch();
  static_assert(std::is_same_v<decltype(rows)::Element, TensorView<const int>>);
  std::vector<int> all;
  for (const auto& row : rows.epoch(0)) all.push_back(row[0]);
  CHECK(all == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("unbatch skips empty batches, and stays at the end") {
  const auto lengths = Counting{4} | dist::data::map([](int i) { return Tensor<int>{Shape{i % 2 == 1 ? 0U : 1U, 2}}; });
  CHECK(collect(lengths | unbatch()).size() == 2);
  const auto dataset = Counting{1} | batch(1) | unbatch();
  auto iterator = dataset.iterate(0);
  Tensor<int> element;
  CHECK(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
}

TEST_CASE("the cardinality of unbatch is unknown") {
  CHECK((Counting{4} | batch(2) | unbatch()).cardinality() == Cardinality::unknown());
  CHECK((Counting{0} | batch(2) | unbatch()).cardinality() == Cardinality::known(0));
  CHECK((Counting{4} | batch(2) | dist::data::repeat() | unbatch()).cardinality() == Cardinality::infinite());
}

TEST_CASE("unbatch copies rows without allocations") {
  const auto rows = tensor_slices(iota<float>({64, 3})) | batch(8) | unbatch();
  auto iterator = rows.iterate(0);
  Tensor<float> row;
  REQUIRE(iterator.next(row));
  const std::size_t before = allocations;
  int more = 0;
  while (iterator.next(row)) ++more;
  CHECK(allocations == before);
  CHECK(more == 63);
}

TEST_CASE("unbatch rejects scalars, and parts that differ in their number of rows") {
  const auto scalars = Counting{1} | dist::data::map([](int) { return Tensor<int>{Shape{}}; });
  CHECK_THROWS_WITH_AS(collect(scalars | unbatch()), doctest::Contains("A scalar has no rows"), ShapeMismatch);
  const auto uneven = Counting{1} | dist::data::map([](int) {
                        return Example{Tensor<int>{Shape{2}}, Tensor<int>{Shape{3}}};
                      });
  CHECK_THROWS_WITH_AS(collect(uneven | unbatch()), doctest::Contains("2 features, 3 labels"), ShapeMismatch);
}
