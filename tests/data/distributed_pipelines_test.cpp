#include <dist/data/distributed_pipelines.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/map.hpp>
#include <dist/data/shard.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include "support/allocations.hpp"

using dist::InputContext;
using dist::InvalidArgument;
using dist::Shape;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::distribute_datasets_from_function;
using dist::data::DistributedPipelines;
using dist::data::PipelinePerReplica;
using dist::data::PipelinePerWorker;
using dist::data::Remainder;
using dist_test::Counting;
using dist_test::iota;
using dist_test::settles_at;
using dist_test::Steps;
using dist_test::steps_of;
using dist_test::values;

TEST_CASE("the function is called once, and each replica takes one of its elements (spec I17)") {
  int calls = 0;
  auto distributed = distribute_datasets_from_function(
      [&](const InputContext& context) {
        ++calls;
        CHECK(context == InputContext{1, 0, 2});
        return Counting{9} | batch(context.get_per_replica_batch_size(4));
      },
      2, InputContext{1, 0, 2});
  CHECK(distributed.num_replicas() == 2);
  CHECK(distributed.cardinality() == Cardinality::known(3));
  const Steps expected{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {}}};
  CHECK(steps_of(distributed) == expected);
  CHECK(steps_of(distributed) == expected);
  CHECK(calls == 1);
}

TEST_CASE("one pipeline serves 1, 2, 3, 4 and 8 replicas (spec I17, I24)") {
  const auto steps = [](std::size_t replicas) {
    auto distributed = distribute_datasets_from_function([](const InputContext&) { return Counting{5} | batch(1); },
                                                         replicas, InputContext{1, 0, replicas});
    return steps_of(distributed);
  };
  CHECK(steps(1) == Steps{{{0}}, {{1}}, {{2}}, {{3}}, {{4}}});
  CHECK(steps(2) == Steps{{{0}, {1}}, {{2}, {3}}, {{4}, {}}});
  CHECK(steps(3) == Steps{{{0}, {1}, {2}}, {{3}, {4}, {}}});
  CHECK(steps(4) == Steps{{{0}, {1}, {2}, {3}}, {{4}, {}, {}, {}}});
  CHECK(steps(8) == Steps{{{0}, {1}, {2}, {3}, {4}, {}, {}, {}}});
}

TEST_CASE("the function of one of several workers reads its part (spec I17, I20)") {
  auto distributed = distribute_datasets_from_function(
      [](const InputContext& context) {
        return Counting{8} | dist::data::shard(context.num_input_pipelines(), context.input_pipeline_id()) |
               batch(context.get_per_replica_batch_size(8));
      },
      2, InputContext{2, 1, 4});
  CHECK(steps_of(distributed) == Steps{{{1, 3}, {5, 7}}});
}

TEST_CASE("a worker's pipeline is not prefetched, a replica's pipeline according to the options (spec I15, I17)") {
  std::atomic<int> made{0};
  const auto counted = [&](const InputContext&) {
    return Counting{100} | batch(2) | dist::data::map([&](const dist::Tensor<int>& rows) {
             ++made;
             return rows;
           });
  };
  const auto one = distribute_datasets_from_function(counted, 2, {1, 0, 2});
  auto steps = one.iterate(0);
  CHECK(settles_at(made, 0));
  CHECK(steps.get_next_as_optional().has_value());
  CHECK(settles_at(made, 2));
  for (const int ahead : {0, 2}) {
    made = 0;
    const auto each = distribute_datasets_from_function(
        counted, 2, {1, 0, 2}, PipelinePerReplica{.fetch_ahead = static_cast<std::size_t>(ahead)});
    auto of_each = each.iterate(0);
    CHECK(settles_at(made, 2 * ahead));
    CHECK(of_each.get_next_as_optional().has_value());
    CHECK(settles_at(made, 2 * (1 + ahead)));
  }
}

TEST_CASE("pipelines per replica may differ in length (spec I18, I24)") {
  std::vector<std::size_t> ids;
  const auto pipeline = [&](const InputContext& context) {
    CHECK(context.num_input_pipelines() == 3);
    CHECK(context.num_replicas_in_sync() == 3);
    ids.push_back(context.input_pipeline_id());
    return Counting{static_cast<int>(context.input_pipeline_id())} | batch(1);
  };
  auto kept = distribute_datasets_from_function(pipeline, 3, InputContext{1, 0, 3}, PipelinePerReplica{});
  CHECK(ids == std::vector<std::size_t>{0, 1, 2});
  CHECK(kept.cardinality() == Cardinality::known(2));
  CHECK(steps_of(kept) == Steps{{{}, {0}, {0}}, {{}, {}, {1}}});
  auto dropped = distribute_datasets_from_function(pipeline, 3, InputContext{1, 0, 3},
                                                   PipelinePerReplica{.fetch_ahead = 0, .last_step = Remainder::drop});
  CHECK(dropped.cardinality() == Cardinality::known(0));
  CHECK(steps_of(dropped).empty());
}

TEST_CASE("an incomplete last step can be dropped (spec I25)") {
  auto distributed = distribute_datasets_from_function([](const InputContext&) { return Counting{5} | batch(1); }, 2,
                                                       InputContext{1, 0, 2}, {.last_step = Remainder::drop});
  CHECK(distributed.cardinality() == Cardinality::known(2));
  CHECK(steps_of(distributed) == Steps{{{0}, {1}}, {{2}, {3}}});
  auto iterator = distributed.iterate(0);
  CHECK(iterator.get_next_as_optional().has_value());
  CHECK(iterator.get_next_as_optional().has_value());
  CHECK_FALSE(iterator.get_next_as_optional().has_value());
  CHECK_FALSE(iterator.get_next_as_optional().has_value());
}

TEST_CASE("at contract level 2 the batches of a finished step are poisoned") {
  auto distributed = distribute_datasets_from_function([](const InputContext&) { return Counting{6} | batch(2); }, 2,
                                                       InputContext{1, 0, 2}, PipelinePerReplica{.fetch_ahead = 2});
  auto iterator = distributed.iterate(0);
  decltype(distributed)::Value step;
  REQUIRE(iterator.next(step));
  const auto kept = step;
  CHECK(values(kept[1]) == std::vector<int>{0, 1});
  REQUIRE(iterator.next(step));
  CHECK(values(step[1]) == std::vector<int>{2, 3});
  CHECK(values(kept[0]) == std::vector<int>{-1, -1});
  CHECK(values(kept[1]) == std::vector<int>{-1, -1});
}

TEST_CASE("a replica without a batch receives zero rows with the other extents (spec I24)") {
  auto distributed = distribute_datasets_from_function(
      [](const InputContext&) {
        return dist::data::tensor_slices(iota<float>({3, 2, 5})) | batch(3);
      },
      2, InputContext{1, 0, 2});
  auto iterator = distributed.iterate(0);
  const auto step = iterator.get_next_as_optional();
  REQUIRE(step.has_value());
  CHECK((*step)[0].shape() == Shape{3, 2, 5});
  CHECK((*step)[1].shape() == Shape{0, 2, 5});
}

TEST_CASE("each loop is a new epoch of every pipeline (spec I31)") {
  auto distributed = distribute_datasets_from_function(
      [](const InputContext& context) {
        return Counting{32} | dist::data::shuffle(32, context.input_pipeline_id()) | batch(32);
      },
      2, InputContext{1, 0, 2}, PipelinePerReplica{});
  const Steps first = steps_of(distributed);
  CHECK(first[0][0] != first[0][1]);
  CHECK(steps_of(distributed) != first);
}

TEST_CASE("the number of steps for infinite and unknown pipelines (spec I27)") {
  const auto count = [](auto first, auto second, Remainder last_step) {
    std::vector<decltype(first)> pipelines;
    pipelines.push_back(first);
    pipelines.push_back(second);
    return DistributedPipelines<decltype(first)>{std::move(pipelines), 2, last_step}.cardinality();
  };
  const auto three = Counting{3} | batch(1);
  const auto unknown = Counting{3, Cardinality::unknown()} | batch(1);
  const auto endless = three | dist::data::repeat();
  const auto repeated = three | dist::data::repeat(2);
  CHECK(count(repeated, endless, Remainder::keep) == Cardinality::infinite());
  CHECK(count(endless, repeated, Remainder::drop) == Cardinality::known(6));
  CHECK(count(three, unknown, Remainder::keep) == Cardinality::unknown());
  auto one = distribute_datasets_from_function([&](const InputContext&) { return endless; }, 2, InputContext{1, 0, 2});
  CHECK(one.cardinality() == Cardinality::infinite());
}

TEST_CASE("the steady state does not allocate") {
  auto distributed = distribute_datasets_from_function([](const InputContext&) { return Counting{100} | batch(2); }, 4,
                                                       InputContext{1, 0, 4}, PipelinePerReplica{});
  auto iterator = distributed.iterate(0);
  decltype(distributed)::Value step;
  for (int warm_up = 0; warm_up < 5; ++warm_up) REQUIRE(iterator.next(step));
  const std::size_t before = allocations;
  while (iterator.next(step)) {
  }
  CHECK(allocations == before);
}

TEST_CASE("pipelines per replica of several workers, and for no replicas, are rejected (spec I18)") {
  const auto pipeline = [](const InputContext&) { return Counting{5} | batch(1); };
  CHECK_THROWS_WITH_AS(
      static_cast<void>(distribute_datasets_from_function(pipeline, 2, InputContext{2, 0, 4}, PipelinePerReplica{})),
      doctest::Contains("the job has 2 workers, and this mode needs exactly one"), InvalidArgument);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(distribute_datasets_from_function(pipeline, 0, InputContext{1, 0, 0}, PipelinePerWorker{})),
      doctest::Contains("1 pipelines for 0 replicas"), InvalidArgument);
}
