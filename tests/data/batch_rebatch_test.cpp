#include <dist/data/batch.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/map.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/strategy/mirrored.hpp>

using dist::Shape;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::PartialBatches;
using dist::data::rebatch;
using dist::data::Remainder;
using dist::data::tensor_slices;
using dist_test::collect;
using dist_test::Counting;
using dist_test::iota;
using dist_test::values;

TEST_CASE("rebatch regroups rows into smaller or larger batches, with a partial last one") {
  for (const std::size_t given : {1U, 2U, 3U, 7U, 20U})
    for (const std::size_t wanted : {1U, 2U, 5U, 6U, 10U, 100U}) {
      CAPTURE(given);
      CAPTURE(wanted);
      const auto batches =
          collect(tensor_slices(iota<int>({10, 2}), iota<float>({10})) | batch(given) | rebatch(wanted));
      REQUIRE(batches.size() == (10 + wanted - 1) / wanted);
      int next = 0;
      for (std::size_t i = 0; i < batches.size(); ++i) {
        const std::size_t rows = i + 1 < batches.size() || 10 % wanted == 0 ? wanted : 10 % wanted;
        REQUIRE(batches[i].x.shape() == Shape{rows, 2});
        REQUIRE(batches[i].y.shape() == Shape{rows});
        for (std::size_t row = 0; row < rows; ++row, ++next) {
          CHECK(batches[i].x(row, 1) == 2 * next + 1);
          CHECK(batches[i].y[row] == static_cast<float>(next));
        }
      }
      CHECK(next == 10);
    }
}

TEST_CASE("rebatch can drop the last partial batch, and restarts in every epoch") {
  auto numbers = Counting{7} | batch(3) | rebatch(2, Remainder::drop);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> all;
    for (const auto& two : numbers) all.insert(all.end(), two.data(), two.data() + two.size());
    CHECK(all == std::vector<int>{0, 1, 2, 3, 4, 5});
  }
  CHECK(collect(Counting{1} | batch(3) | rebatch(2, Remainder::drop)).empty());
  CHECK(collect(Counting{0} | batch(3) | rebatch(2)).empty());
}

TEST_CASE("rebatch reports batch size, partial batches and cardinality") {
  const auto full = Counting{12} | batch(4) | rebatch(5);
  CHECK(full.batch_size() == 5);
  CHECK(full.cardinality() == Cardinality::known(3));
  CHECK(full.partial_batches() == PartialBatches::last);
  CHECK((Counting{12} | batch(4) | rebatch(5, Remainder::drop)).cardinality() == Cardinality::known(2));
  const auto divisible = Counting{12} | batch(4) | rebatch(6);
  CHECK(divisible.cardinality() == Cardinality::known(2));
  CHECK(divisible.partial_batches() == PartialBatches::none);
  CHECK((Counting{10} | batch(4) | rebatch(5)).cardinality() == Cardinality::unknown());
  CHECK((Counting{0} | batch(4) | rebatch(5)).cardinality() == Cardinality::known(0));
  const auto endless = Counting{12} | batch(4) | dist::data::repeat() | rebatch(5);
  CHECK(endless.cardinality().is_infinite());
  CHECK(endless.partial_batches() == PartialBatches::none);
}

TEST_CASE("batches of rebatch are global batches for a strategy") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  auto dataset = strategy.distribute_dataset(tensor_slices(iota<int>({8, 1})) | batch(3) | rebatch(4));
  std::vector<std::vector<int>> received(2);
  for (auto& step : dataset)
    strategy.run(
        [&](auto& replica, const auto& mine) {
          auto& all = received[replica.local_index()];
          all.insert(all.end(), mine.data(), mine.data() + mine.size());
        },
        step);
  CHECK(received == std::vector<std::vector<int>>{{0, 1, 4, 5}, {2, 3, 6, 7}});
}

TEST_CASE("rebatch rejects a batch size of 0, and rows that differ in shape") {
  CHECK_THROWS_WITH_AS(static_cast<void>(rebatch(0)),
                       "rebatch has no room for rows (batch_size is 0). Use 1 or more rows per batch.",
                       dist::InvalidArgument);
  const auto ragged = Counting{2} | dist::data::map([](int i) {
                        return dist::Tensor<int>{{1, static_cast<std::size_t>(i + 1)}};
                      }) |
                      rebatch(2);
  CHECK_THROWS_AS(static_cast<void>(collect(ragged)), dist::ShapeMismatch);
}
