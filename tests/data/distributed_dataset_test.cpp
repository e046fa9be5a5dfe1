#include <dist/data/distributed_dataset.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/tensor_slices.hpp>
#include "support/allocations.hpp"

using dist::IndexRange;
using dist::InvalidArgument;
using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::TensorView;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::DistributedDataset;
using dist::data::Example;
using dist::data::rows_of_replica;
using dist::data::tensor_slices;
using dist_test::Counting;
using dist_test::iota;
using dist_test::values;

namespace {

/// The values that each replica receives at each step.
using Steps = std::vector<std::vector<std::vector<int>>>;

Steps steps(int elements, std::size_t global_batch, std::size_t replicas) {
  Steps all;
  DistributedDataset distributed{Counting{elements} | batch(global_batch), replicas};
  for (const auto& step : distributed) {
    REQUIRE(step.size() == replicas);
    auto& received = all.emplace_back();
    for (const auto& rows : step) received.push_back(values(rows));
  }
  return all;
}

}  // namespace

TEST_CASE("a batch is cut into slices of ceil(b / R), the first ones full (spec I05)") {
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U})
    for (std::size_t rows = 0; rows <= 40; ++rows) {
      CAPTURE(replicas);
      CAPTURE(rows);
      const std::size_t slice = (rows + replicas - 1) / replicas;
      std::size_t next = 0;
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        const IndexRange range = rows_of_replica(rows, replica, replicas);
        CHECK(range.begin == next);
        CHECK(range.size() == std::min(slice, rows - next));
        next = range.end;
      }
      CHECK(next == rows);
    }
}

TEST_CASE("the last partial batch (spec I05, I24)") {
  CHECK(steps(10, 4, 1) == Steps{{{0, 1, 2, 3}}, {{4, 5, 6, 7}}, {{8, 9}}});
  CHECK(steps(10, 4, 2) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {9}}});
  CHECK(steps(7, 4, 2) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6}}});
  CHECK(steps(5, 4, 2) == Steps{{{0, 1}, {2, 3}}, {{4}, {}}});
  CHECK(steps(5, 5, 3) == Steps{{{0, 1}, {2, 3}, {4}}});
  CHECK(steps(4, 4, 3) == Steps{{{0, 1}, {2, 3}, {}}});
  CHECK(steps(9, 8, 4) == Steps{{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {{8}, {}, {}, {}}});
  CHECK(steps(10, 16, 8) == Steps{{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {}, {}, {}}});
  CHECK(steps(3, 3, 8) == Steps{{{0}, {1}, {2}, {}, {}, {}, {}, {}}});
  CHECK(steps(0, 4, 2).empty());
}

TEST_CASE("a replica without data receives batches of zero rows with the other extents (spec I24)") {
  DistributedDataset distributed{tensor_slices(iota<float>({3, 2, 2}), iota<int>({3})) | batch(2), 2};
  using Distributed = decltype(distributed);
  static_assert(
      std::is_same_v<Distributed::Value, dist::PerReplica<Example<TensorView<const float>, TensorView<const int>>>>);
  CHECK(distributed.cardinality() == Cardinality::known(2));
  CHECK(distributed.num_replicas() == 2);
  auto iterator = distributed.iterate(0);
  Distributed::Value step;
  REQUIRE(iterator.next(step));
  CHECK(step[1].x.shape() == Shape{1, 2, 2});
  CHECK(values(step[1].x) == std::vector<float>{4, 5, 6, 7});
  REQUIRE(iterator.next(step));
  CHECK(step[0].x.shape() == Shape{1, 2, 2});
  CHECK(values(step[0].y) == std::vector<int>{2});
  CHECK(step[1].x.shape() == Shape{0, 2, 2});
  CHECK(step[1].y.shape() == Shape{0});
  CHECK_FALSE(iterator.next(step));
}

TEST_CASE("replicas see slices of one batch, without a copy") {
  DistributedDataset distributed{Counting{8} | batch(8) | dist::data::prefetch(1), 4};
  for (const auto& step : distributed)
    for (std::size_t replica = 1; replica < 4; ++replica) CHECK(step[replica].data() == step[0].data() + 2 * replica);
}

TEST_CASE("each loop is a new epoch, and an epoch can be asked for (spec I31)") {
  DistributedDataset distributed{Counting{32} | dist::data::shuffle(32, 1) | batch(32), 2};
  std::vector<std::vector<int>> epochs;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const auto& step : distributed) epochs.push_back(values(step[0]));
  REQUIRE(epochs.size() == 2);
  CHECK(epochs[0] != epochs[1]);
  for (const auto& step : distributed.epoch(1)) CHECK(values(step[0]) == epochs[1]);
}

TEST_CASE("a steady state does not allocate, partial batches included") {
  const auto batches = tensor_slices(iota<float>({250, 4}), iota<int>({250})) | dist::data::shuffle(100, 1) |
                       batch(20) | dist::data::prefetch(2);
  DistributedDataset distributed{batches, 4};
  auto iterator = distributed.iterate(0);
  decltype(distributed)::Value step;
  for (int warm_up = 0; warm_up < 5; ++warm_up) REQUIRE(iterator.next(step));
  const std::size_t before = allocations;
  int steps_taken = 5;
  while (iterator.next(step)) ++steps_taken;
  CHECK(allocations == before);
  CHECK(steps_taken == 13);
}

TEST_CASE("what map leaves of a batch can be distributed as long as it has rows (spec I02)") {
  const auto paired = Counting{4} | batch(4) | dist::data::map([](const Tensor<int>& rows) {
                        return Example{rows, Tensor<int>{Shape{rows.rows() - 1}}};
                      });
  DistributedDataset uneven{paired, 2};
  CHECK_THROWS_WITH_AS(static_cast<void>(uneven.begin()), doctest::Contains("4 features, 3 labels"), ShapeMismatch);
}

TEST_CASE("zero replicas are refused") {
  CHECK_THROWS_WITH_AS((DistributedDataset{Counting{4} | batch(2), 0}),
                       doctest::Contains("the number of replicas is 0"), InvalidArgument);
}
