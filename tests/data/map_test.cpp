#include <dist/data/map.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>

using dist::data::batch;
using dist::data::Cardinality;
using dist::data::map;
using dist_test::collect;
using dist_test::Counting;

TEST_CASE("map applies a function to every element, and may change its type") {
  const auto squares = Counting{4} | map([](int i) { return i * i; });
  CHECK(collect(squares) == std::vector<int>{0, 1, 4, 9});
  CHECK(squares.cardinality() == Cardinality::known(4));
  const auto names = squares | map([](const int& i) { return std::to_string(i); });
  static_assert(std::is_same_v<decltype(names)::Element, std::string>);
  CHECK(collect(names) == std::vector<std::string>{"0", "1", "4", "9"});
  CHECK((Counting{4, Cardinality::unknown()} | map([](int i) { return i; })).cardinality() == Cardinality::unknown());
}

TEST_CASE("RowCount::kept is verified for every batch (spec I27)") {
  using Rows = dist::Tensor<int>;
  using dist::data::PartialBatches;
  using dist::data::RowCount;
  const auto batches = Counting{4} | batch(2);
  const auto kept = batches | map([](const Rows& rows) { return rows; }, RowCount::kept);
  CHECK(dist::data::partial_batches_of(kept) == PartialBatches::none);
  CHECK(collect(kept).size() == 2);
  const auto halve = [](const Rows&) { return Rows{dist::Shape{1}}; };
  CHECK(dist::data::partial_batches_of(batches | map(halve)) == PartialBatches::any);
  CHECK(collect(batches | map(halve)).size() == 2);
  CHECK_THROWS_WITH_AS(collect(batches | map(halve, RowCount::kept)), doctest::Contains("it made 1 of 2"),
                       dist::ShapeMismatch);
}

TEST_CASE("map keeps the batch size if its results have rows (spec I02)") {
  const auto batches = Counting{4} | batch(2);
  const auto tensors = batches | map([](const dist::Tensor<int>& rows) { return rows; });
  const auto sums = batches | map([](const dist::Tensor<int>& rows) { return rows[0] + rows[1]; });
  static_assert(dist::data::is_batched<decltype(tensors)> && dist::data::is_batched<decltype(sums)>);
  CHECK(dist::data::known_batch_size(tensors) == 2);
  CHECK(dist::data::known_batch_size(sums) == 0);
  CHECK(collect(sums) == std::vector<int>{1, 5});
}
