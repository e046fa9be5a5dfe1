#include <dist/data/batch.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <utility>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/map.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <support/allocations.hpp>

using dist::InvalidArgument;
using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::Example;
using dist::data::Remainder;
using dist_test::collect;
using dist_test::Counting;
using dist_test::iota;
using dist_test::values;

TEST_CASE("all batches except the last one are full (spec I05)") {
  const auto batches = Counting{7} | batch(3);
  CHECK(batches.cardinality() == Cardinality::known(3));
  static_assert(dist::data::is_batched<decltype(batches)>);
  const auto all = collect(batches);
  REQUIRE(all.size() == 3);
  CHECK(values(all[0]) == std::vector<int>{0, 1, 2});
  CHECK(values(all[1]) == std::vector<int>{3, 4, 5});
  CHECK(values(all[2]) == std::vector<int>{6});
}

TEST_CASE("the last partial batch can be dropped (spec I25)") {
  const auto batches = Counting{7} | batch(3, Remainder::drop);
  CHECK(batches.cardinality() == Cardinality::known(2));
  CHECK(collect(batches).size() == 2);
  CHECK(collect(Counting{6} | batch(3, Remainder::drop)).size() == 2);
  CHECK((Counting{6} | batch(3)).cardinality() == Cardinality::known(2));
  CHECK(collect(Counting{2} | batch(3, Remainder::drop)).empty());
}

TEST_CASE("batch of unknown, infinite, empty and batched datasets") {
  const Counting unknown{5, Cardinality::unknown()};
  CHECK((unknown | batch(2)).cardinality() == Cardinality::unknown());
  CHECK(collect(unknown | batch(2)).size() == 3);
  CHECK((Counting{5} | dist::data::repeat() | batch(2)).cardinality() == Cardinality::infinite());
  CHECK(collect(Counting{0} | batch(2)).empty());
  const auto nested = collect(Counting{4} | batch(2) | batch(2));
  REQUIRE(nested.size() == 1);
  CHECK(nested[0].shape() == Shape{2, 2});
}

TEST_CASE("features and labels are batched together") {
  const auto batches = collect(dist::data::tensor_slices(iota<float>({5, 2, 2}), iota<int>({5})) | batch(4));
  REQUIRE(batches.size() == 2);
  CHECK(batches[0].x.shape() == Shape{4, 2, 2});
  CHECK(batches[0].y.shape() == Shape{4});
  CHECK(batches[1].x.shape() == Shape{1, 2, 2});
  CHECK(values(batches[1].x) == std::vector<float>{16, 17, 18, 19});
  CHECK(values(batches[1].y) == std::vector<int>{4});
}

TEST_CASE("a batch size above the size of the dataset allocates memory only for its elements") {
  const auto all = collect(Counting{3} | batch(std::numeric_limits<std::size_t>::max()));
  REQUIRE(all.size() == 1);
  CHECK(values(all[0]) == std::vector<int>{0, 1, 2});
}

TEST_CASE("a batch of a dataset of unknown size grows, and keeps its memory") {
  const Counting unknown{10000, Cardinality::unknown()};
  const auto all = collect(unknown | batch(std::numeric_limits<std::size_t>::max()));
  REQUIRE(all.size() == 1);
  CHECK(values(all[0]) == collect(unknown));
  const auto pairs = unknown | dist::data::map([](int i) { return std::pair{i, Example{-i, 2 * i}}; }) | batch(3000);
  auto iterator = pairs.iterate(0);
  decltype(pairs)::Element rows;
  REQUIRE(iterator.next(rows));
  const std::size_t before = allocations;
  for (int first = 3000; iterator.next(rows); first += 3000)
    for (std::size_t row = 0; row < rows.first.size(); ++row) {
      REQUIRE(rows.first[row] == first + static_cast<int>(row));
      REQUIRE(rows.second.x[row] == -rows.first[row]);
      REQUIRE(rows.second.y[row] == 2 * rows.first[row]);
    }
  CHECK(allocations == before);
  CHECK(rows.first.size() == 1000);
}

TEST_CASE("batch rejects a dataset with more elements than its cardinality") {
  CHECK_THROWS_WITH_AS(collect(Counting{5, Cardinality::known(3)} | batch(9)),
                       doctest::Contains("cardinality() returned 3"), InvalidArgument);
}

TEST_CASE("batch reuses the caller's batch") {
  const auto batches = Counting{100} | batch(10);
  auto iterator = batches.iterate(0);
  Tensor<int> rows;
  REQUIRE(iterator.next(rows));
  const int* memory = rows.data();
  while (iterator.next(rows)) CHECK(rows.data() == memory);
}

TEST_CASE("batch rejects a batch size of 0, and elements that differ in shape") {
  CHECK_THROWS_WITH_AS(static_cast<void>(batch(0)), doctest::Contains("batch_size is 0"), InvalidArgument);
  const auto growing = Counting{3} | dist::data::map([](int i) { return Tensor<int>{Shape{i < 2 ? 2U : 3U}}; });
  CHECK_THROWS_WITH_AS(collect(growing | batch(3)),
                       doctest::Contains("element 2 has shape [3], the elements before it [2]"), ShapeMismatch);
  CHECK(collect(growing | batch(2)).size() == 2);
}

TEST_CASE("pairs are batched as a pair of batches (spec I30)") {
  const auto pairs = Counting{3} | dist::data::map([](int i) { return std::pair{i, 0.5F * static_cast<float>(i)}; });
  const auto all = collect(pairs | batch(2));
  REQUIRE(all.size() == 2);
  CHECK(values(all[0].first) == std::vector<int>{0, 1});
  CHECK(values(all[1].second) == std::vector<float>{1});
}
