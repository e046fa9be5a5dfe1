#include <dist/data/replica_batches.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/map.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include "support/allocations.hpp"

using dist::PerReplica;
using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::TensorView;
using dist::data::AutoShardPolicy;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::JoinableRows;
using dist::data::PartialBatches;
using dist::data::RebatchPlan;
using dist::data::RebatchRule;
using dist::data::Remainder;
using dist::data::detail::any_pass;
using dist::data::detail::AnyRows;
using dist::data::detail::batch_ops;
using dist::data::detail::cycled_steps;
using dist::data::detail::sliced_steps;
using dist_test::Counting;
using dist_test::iota;
using dist_test::values;

namespace {

struct Interval;

}  // namespace

template <>
struct dist::data::Rowwise<Interval> {
  using View = Interval;
  using Row = int;
  static std::size_t count(const Interval& batch);
  static Interval view(const Interval& batch, std::size_t first, std::size_t count);
};

namespace {

using Batches = std::vector<std::vector<int>>;

/// Returns the batches of all local replicas, step by step.
template <class D>
Batches received(decltype(&cycled_steps) make_steps, const D& dataset, const RebatchPlan& plan) {
  using Batch = typename D::Element;
  const auto steps = make_steps(any_pass(dataset, 0), batch_ops<Batch>, plan);
  std::vector<AnyRows> step(plan.local_replicas);
  Batches all;
  while (steps->next(step))
    for (const AnyRows& rows : step) all.push_back(dist_test::values(dist::data::detail::typed_rows<Batch>(rows)));
  CHECK_FALSE(steps->next(step));
  return all;
}
/// Returns the steps of a dataset.
template <class D>
dist::data::detail::ReplicaSteps<typename D::Element> steps_of(const D& dataset, const RebatchPlan& plan) {
  return {dist::data::detail::rebatched(any_pass(dataset, 0), batch_ops<typename D::Element>, plan),
          plan.local_replicas,
          {dist::data::NoAgreement{}, Cardinality::unknown(), plan.last_step}};
}

/// A batch that can be divided, but whose rows cannot be copied.
struct Interval {
  int first = 0;
  int last = 0;
};

}  // namespace

std::size_t dist::data::Rowwise<Interval>::count(const Interval& batch) {
  return static_cast<std::size_t>(batch.last - batch.first);
}
Interval dist::data::Rowwise<Interval>::view(const Interval& batch, std::size_t first, std::size_t count) {
  const int begin = batch.first + static_cast<int>(first);
  return {begin, begin + static_cast<int>(count)};
}

namespace {

static_assert(JoinableRows<Tensor<float>> && JoinableRows<TensorView<const float>> && !JoinableRows<Interval>);

}  // namespace

TEST_CASE("RebatchPlan::rule selects the specified rule (spec I02, I06, I14)") {
  const auto rule = [](std::size_t batch_size, AutoShardPolicy sharding, std::size_t workers) {
    return RebatchPlan{.batch_size = batch_size, .workers = workers, .sharding = sharding}.rule();
  };
  using enum AutoShardPolicy;
  for (const std::size_t workers : {1U, 2U}) {
    CHECK(rule(4, off, workers) == RebatchRule::by_cycle);
    CHECK(rule(4, file, workers) == RebatchRule::by_cycle);
    CHECK(rule(4, data, workers) == RebatchRule::by_slices);
    CHECK(rule(0, off, workers) == RebatchRule::by_slices);
    CHECK(rule(0, file, workers) == RebatchRule::by_slices);
  }
  CHECK(rule(4, hint, 1) == RebatchRule::by_cycle);
  CHECK(rule(4, hint, 2) == RebatchRule::by_slices);
}

TEST_CASE("by cycle, batches of another size are joined (spec I03)") {
  const RebatchPlan plan{.batch_size = 5, .local_replicas = 2};
  CHECK(received(cycled_steps, Counting{11} | batch(1), plan) ==
        Batches{{0, 1, 2}, {3, 4}, {5, 6, 7}, {8, 9}, {10}, {}});
  CHECK(received(cycled_steps, Counting{11} | batch(2), plan) ==
        Batches{{0, 1, 2}, {3, 4}, {5, 6, 7}, {8, 9}, {10}, {}});
  CHECK(received(cycled_steps, Counting{11} | batch(7), plan) ==
        Batches{{0, 1, 2}, {3, 4}, {5, 6, 7}, {8, 9}, {10}, {}});
  CHECK(received(cycled_steps, Counting{11} | batch(99), plan) ==
        Batches{{0, 1, 2}, {3, 4}, {5, 6, 7}, {8, 9}, {10}, {}});
  CHECK(received(cycled_steps, Counting{3} | batch(2) | dist::data::repeat(3), plan) ==
        Batches{{0, 1, 2}, {0, 1}, {2, 0, 1}, {2}});
}

TEST_CASE("by cycle, all rows keep their order, at every size (spec I03, I04)") {
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U})
    for (const std::size_t global : {1U, 3U, 8U, 13U})
      for (const std::size_t incoming : {1U, 2U, 5U, 8U, 30U})
        for (int count = 0; count <= 20; ++count) {
          CAPTURE(replicas);
          CAPTURE(global);
          CAPTURE(incoming);
          CAPTURE(count);
          const auto batches = Counting{count} | batch(incoming) | dist::data::repeat(2);
          const Batches all =
              received(cycled_steps, batches, RebatchPlan{.batch_size = global, .local_replicas = replicas});
          Batches expected;
          for (int row = 0; row < 2 * count;)
            for (std::size_t replica = 0; replica < replicas; ++replica) {
              auto& rows = expected.emplace_back();
              const std::size_t share = global / replicas + (replica < global % replicas ? 1 : 0);
              while (rows.size() < share && row < 2 * count) rows.push_back(row++ % count);
            }
          CHECK(all == expected);
        }
}

TEST_CASE("by cycle, each of several workers has its own sizes (spec I04)") {
  RebatchPlan plan{.batch_size = 7, .workers = 2, .local_replicas = 2};
  CHECK(received(cycled_steps, Counting{14} | batch(7), plan) ==
        Batches{{0, 1}, {2, 3}, {4, 5}, {6}, {7, 8}, {9, 10}, {11, 12}, {13}});
  plan.worker = 1;
  CHECK(received(cycled_steps, Counting{14} | batch(7), plan) ==
        Batches{{0, 1}, {2}, {3, 4}, {5, 6}, {7, 8}, {9}, {10, 11}, {12, 13}});
}

TEST_CASE("a share of 0 rows is an empty batch, anywhere in the data (spec I04, I24)") {
  const RebatchPlan plan{.batch_size = 1, .workers = 2, .worker = 1};
  CHECK(received(cycled_steps, Counting{2} | batch(1), plan) == Batches{{}, {0}, {}, {1}});
}

TEST_CASE("rows are views of one batch, and copies only if they span two (spec I03)") {
  const Tensor<int> known = iota<int>({6});
  const auto batches = Counting{2} | dist::data::map([&](int i) { return known.view().rows(i == 0 ? 0U : 3U, 3); });
  auto steps = steps_of(batches, RebatchPlan{.batch_size = 6, .local_replicas = 3});
  PerReplica<TensorView<const int>> rows(3);
  REQUIRE(steps.next(rows));
  CHECK(rows[0].data() == known.data());
  CHECK(rows[0].shape() == Shape{2});
  CHECK(values(rows[1]) == std::vector<int>{2, 3});
  CHECK(rows[1].data() != known.data() + 2);
  CHECK(rows[2].data() == known.data() + 4);
  CHECK(rows[2].shape() == Shape{2});
}

TEST_CASE("by slices, each of several workers takes its own (spec I05, I09)") {
  RebatchPlan plan{.workers = 2, .worker = 1, .local_replicas = 2};
  CHECK(received(sliced_steps, Counting{6} | batch(4), plan) == Batches{{0}, {1}, {2}, {3}, {4}, {5}, {}, {}});
  plan.sharding = AutoShardPolicy::data;
  CHECK(received(sliced_steps, Counting{6} | batch(4), plan) == Batches{{1}, {3}, {5}, {}});
}

TEST_CASE("an incomplete last step can be dropped (spec I25)") {
  const RebatchPlan plan{.batch_size = 4, .local_replicas = 2, .last_step = Remainder::drop};
  CHECK(received(cycled_steps, Counting{7} | batch(4), plan) == Batches{{0, 1}, {2, 3}});
  CHECK(received(cycled_steps, Counting{7} | batch(4) | dist::data::repeat(2), plan) ==
        Batches{{0, 1}, {2, 3}, {4, 5}, {6, 0}, {1, 2}, {3, 4}});
  CHECK(received(sliced_steps, Counting{7} | batch(4) | dist::data::repeat(2), plan) ==
        Batches{{0, 1}, {2, 3}, {0, 1}, {2, 3}});
}

TEST_CASE("without a batch size, a step that leaves a replica of any worker without rows is incomplete (spec I25)") {
  // Slices of 7 rows in batches of 3: 1, 1, 1 and 1, 0, 0 rows; slices of 4 rows in batches of 4: 2, 2, 0.
  RebatchPlan plan{.local_replicas = 3, .last_step = Remainder::drop};
  CHECK(received(sliced_steps, Counting{7} | batch(3), plan) == Batches{{0}, {1}, {2}, {3}, {4}, {5}});
  CHECK(received(sliced_steps, Counting{4} | batch(4), plan).empty());
  plan.last_step = Remainder::keep;
  CHECK(received(sliced_steps, Counting{4} | batch(4), plan) == Batches{{0, 1}, {2, 3}, {}});
  // Worker 0 drops the step because of worker 1, whether they divide each batch or read separate batches.
  for (const auto sharding : {AutoShardPolicy::data, AutoShardPolicy::file}) {
    const RebatchPlan first{
        .workers = 2, .worker = 0, .local_replicas = 1, .sharding = sharding, .last_step = Remainder::drop};
    CHECK(received(sliced_steps, Counting{3} | batch(2), first) ==
          (sharding == AutoShardPolicy::data ? Batches{{0}} : Batches{{0}, {1}}));
  }
}

TEST_CASE("steps_of follows from the number of batches (spec I27)") {
  using enum PartialBatches;
  const auto steps = [](RebatchPlan plan) { return plan.steps_of(Cardinality::known(6), plan.rule()); };
  CHECK(steps({.batch_size = 4, .partial_batches = last, .local_replicas = 2}) == Cardinality::known(6));
  CHECK(steps({.batch_size = 4, .partial_batches = any, .local_replicas = 2}) == Cardinality::unknown());
  // If any batch may be partial, some may have no rows and make no step, under either rule.
  CHECK(steps({.batch_size = 0, .partial_batches = any, .local_replicas = 2}) == Cardinality::unknown());
  CHECK(steps({.batch_size = 4, .partial_batches = any, .sharding = AutoShardPolicy::data}) == Cardinality::unknown());
  CHECK(steps({.batch_size = 0, .partial_batches = none, .local_replicas = 2}) == Cardinality::known(6));
  CHECK(steps({.batch_size = 0, .partial_batches = none, .last_step = Remainder::drop}) == Cardinality::unknown());
  CHECK(steps({.batch_size = 4, .partial_batches = none, .workers = 3}) == Cardinality::known(18));
  CHECK(steps({.batch_size = 4, .partial_batches = last, .workers = 3}) == Cardinality::unknown());
  CHECK(steps({.batch_size = 4, .partial_batches = last, .workers = 3, .sharding = AutoShardPolicy::data}) ==
        Cardinality::known(6));
  CHECK(steps({.batch_size = 2, .partial_batches = none, .workers = 3}) == Cardinality::unknown());
  const RebatchPlan plan{.batch_size = 4};
  CHECK(plan.steps_of(Cardinality::infinite(), plan.rule()) == Cardinality::infinite());
  CHECK(plan.steps_of(Cardinality::known(0), plan.rule()) == Cardinality::known(0));
}

TEST_CASE("joining batches does not allocate in the steady state") {
  const auto batches = dist::data::tensor_slices(iota<float>({300, 4}), iota<int>({300})) | batch(7);
  using Batch = std::remove_const_t<decltype(batches)>::Element;
  auto steps = steps_of(batches, RebatchPlan{.batch_size = 10, .local_replicas = 3});
  PerReplica<dist::data::RowsOf<Batch>> rows(3);
  int next = 0;
  const auto take_step = [&] {
    if (!steps.next(rows)) return false;
    for (const auto& part : rows)
      for (std::size_t row = 0; row < part.y.rows(); ++row, ++next) {
        REQUIRE(part.y[row] == next);
        REQUIRE(part.x(row, 3) == static_cast<float>(4 * next + 3));
      }
    return true;
  };
  for (int warm_up = 0; warm_up < 14; ++warm_up) REQUIRE(take_step());
  const std::size_t before = allocations;
  while (take_step()) {
  }
  CHECK(allocations == before);
  CHECK(next == 300);
}

TEST_CASE("batches that cannot be joined are sliced, even if their size is known (spec I03, I05)") {
  const auto intervals = Counting{7} | batch(4) | dist::data::map([](const Tensor<int>& rows) {
                           return Interval{rows[0], rows[0] + static_cast<int>(rows.size())};
                         });
  const RebatchPlan plan{.batch_size = dist::data::known_batch_size(intervals), .local_replicas = 2};
  CHECK(plan.rule() == RebatchRule::by_cycle);
  auto steps = steps_of(intervals, plan);
  PerReplica<Interval> step(2);
  REQUIRE(steps.next(step));
  REQUIRE(steps.next(step));
  CHECK(step[0].first == 4);
  CHECK(step[0].last == 6);
  CHECK(step[1].first == 6);
  CHECK(step[1].last == 7);
  CHECK_FALSE(steps.next(step));
}

TEST_CASE("rows of different shape cannot be joined") {
  const auto growing = Counting{4} | batch(2) | dist::data::map([](const Tensor<int>& rows) {
                         return Tensor<int>{Shape{1, rows[0] == 0 ? 2U : 3U}};
                       });
  CHECK_THROWS_WITH_AS((received(cycled_steps, growing, RebatchPlan{.batch_size = 2})),
                       doctest::Contains("element 1 has shape [3], the elements before it [2]"), ShapeMismatch);
}
