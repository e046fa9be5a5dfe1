#include <dist/data/distributed_dataset.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include "support/allocations.hpp"
#include "support/stderr_of.hpp"

using dist::InputContext;
using dist::InvalidArgument;
using dist::Shape;
using dist::ShapeMismatch;
using dist::Tensor;
using dist::TensorView;
using dist::data::AutoShardPolicy;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::DistributedDataset;
using dist::data::Example;
using dist::data::InputOptions;
using dist::data::RebatchRule;
using dist::data::Remainder;
using dist::data::tensor_slices;
using dist_test::Counting;
using dist_test::iota;
using dist_test::settles_at;
using dist_test::Steps;
using dist_test::steps_of;
using dist_test::values;

namespace {

Steps steps(int elements, std::size_t global_batch, std::size_t replicas, const InputOptions& options = {}) {
  DistributedDataset distributed{Counting{elements} | batch(global_batch), replicas, options};
  CHECK(distributed.num_replicas() == replicas);
  return steps_of(distributed);
}

/// Distributes to two replicas of one worker.
template <class D>
auto distribute(D dataset, const InputOptions& options = {}) {
  return dist::data::distribute_dataset(std::move(dataset), 2, InputContext{1, 0, 2}, options);
}

/// Batches of two rows that are views of another object's tensor.
class Views : public dist::data::DatasetRange<Views> {
 public:
  using Element = TensorView<const int>;
  static constexpr bool is_batched = true;

  explicit Views(const Tensor<int>& rows) : rows_(&rows) {}

  class Iterator {
   public:
    explicit Iterator(const Tensor<int>& rows) : rows_(&rows) {}
    bool next(Element& element) {
      if (first_ == rows_->rows()) return false;
      element = rows_->view().rows(first_, 2);
      first_ += 2;
      return true;
    }

   private:
    const Tensor<int>* rows_;
    std::size_t first_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*rows_}; }
  [[nodiscard]] Cardinality cardinality() const { return Cardinality::known(rows_->rows() / 2); }

 private:
  const Tensor<int>* rows_;
};

constexpr InputOptions sliced{.auto_shard_policy = AutoShardPolicy::data};

}  // namespace

TEST_CASE("full and partial last batches are cut by the cycle of sizes (spec I01, I03, I04, I24, I32)") {
  CHECK(steps(10, 4, 1) == Steps{{{0, 1, 2, 3}}, {{4, 5, 6, 7}}, {{8, 9}}});
  CHECK(steps(10, 4, 2) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8, 9}, {}}});
  CHECK(steps(7, 4, 2) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6}}});
  CHECK(steps(13, 8, 4) == Steps{{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {{8, 9}, {10, 11}, {12}, {}}});
  CHECK(steps(8, 5, 2) == Steps{{{0, 1, 2}, {3, 4}}, {{5, 6, 7}, {}}});
  CHECK(steps(4, 4, 3) == Steps{{{0, 1}, {2}, {3}}});
  CHECK(steps(7, 5, 3) == Steps{{{0, 1}, {2, 3}, {4}}, {{5, 6}, {}, {}}});
  CHECK(steps(10, 16, 8) == Steps{{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {}, {}, {}}});
  CHECK(steps(3, 3, 8) == Steps{{{0}, {1}, {2}, {}, {}, {}, {}, {}}});
  CHECK(steps(0, 4, 2).empty());
}

TEST_CASE("explicit AutoShardPolicy::data cuts every batch into slices (spec I05, I06)") {
  CHECK(steps(10, 4, 1, sliced) == Steps{{{0, 1, 2, 3}}, {{4, 5, 6, 7}}, {{8, 9}}});
  CHECK(steps(10, 4, 2, sliced) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {9}}});
  CHECK(steps(13, 8, 4, sliced) == Steps{{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {{8, 9}, {10, 11}, {12}, {}}});
  CHECK(steps(8, 5, 2, sliced) == Steps{{{0, 1, 2}, {3, 4}}, {{5, 6}, {7}}});
  CHECK(steps(4, 4, 3, sliced) == Steps{{{0, 1}, {2, 3}, {}}});
  CHECK(steps(9, 8, 4, sliced) == Steps{{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {{8}, {}, {}, {}}});
  CHECK(steps(3, 3, 8, sliced) == Steps{{{0}, {1}, {2}, {}, {}, {}, {}, {}}});
}

TEST_CASE("rebatch_rule reports the rule that applies (spec I02, I06, I14)") {
  const auto known = Counting{8} | batch(4);
  const auto unknown = Counting{8} | batch(4) | dist::data::map([](const Tensor<int>& rows) { return rows.rows(); });
  static_assert(!dist::data::HasRows<decltype(unknown)::Element>);
  for (const auto policy :
       {AutoShardPolicy::off, AutoShardPolicy::automatic, AutoShardPolicy::file, AutoShardPolicy::hint})
    CHECK(DistributedDataset{known, 2, InputOptions{.auto_shard_policy = policy}}.rebatch_rule() ==
          RebatchRule::by_cycle);
  CHECK(DistributedDataset{known, 2, sliced}.rebatch_rule() == RebatchRule::by_slices);
  CHECK(DistributedDataset{known | dist::data::prefetch(2) | dist::data::repeat(2) | dist::data::shuffle(2), 2}
            .rebatch_rule() == RebatchRule::by_cycle);
}

TEST_CASE("partial batches in the middle are joined with the next one (spec I03)") {
  DistributedDataset twice{Counting{7} | batch(4) | dist::data::repeat(2), 2};
  CHECK(twice.cardinality() == Cardinality::unknown());
  CHECK(steps_of(twice) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 0}}, {{1, 2}, {3, 4}}, {{5, 6}, {}}});
  DistributedDataset apart{Counting{7} | batch(4) | dist::data::repeat(2), 2, sliced};
  CHECK(apart.cardinality() == Cardinality::unknown());
  CHECK(steps_of(apart) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6}}, {{0, 1}, {2, 3}}, {{4, 5}, {6}}});
}

TEST_CASE("a last step that does not fill the batches of all replicas can be dropped (spec D15, I23, I25)") {
  constexpr InputOptions drop{.last_step = Remainder::drop};
  CHECK(steps(10, 4, 2, drop) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}});
  CHECK(steps(8, 4, 2, drop).size() == 2);
  CHECK(steps(3, 4, 2, drop).empty());
  CHECK(steps(10, 5, 3, drop) == Steps{{{0, 1}, {2, 3}, {4}}, {{5, 6}, {7, 8}, {9}}});
  constexpr InputOptions drop_slices{.auto_shard_policy = AutoShardPolicy::data, .last_step = Remainder::drop};
  CHECK(steps(10, 4, 2, drop_slices) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}});
  CHECK(steps(2, 2, 4, drop_slices) == Steps{{{0}, {1}, {}, {}}});
  DistributedDataset full{Counting{10} | batch(4, Remainder::drop), 2};
  CHECK(full.cardinality() == Cardinality::known(2));
  CHECK(steps_of(full) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}});
}

TEST_CASE("a replica without data receives batches of zero rows with the other extents (spec I24)") {
  DistributedDataset distributed{tensor_slices(iota<float>({3, 2, 2}), iota<int>({3})) | batch(2), 2};
  using Distributed = decltype(distributed);
  static_assert(
      std::is_same_v<Distributed::Value, dist::PerReplica<Example<TensorView<const float>, TensorView<const int>>>>);
  CHECK(distributed.cardinality() == Cardinality::known(2));
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
  CHECK_FALSE(iterator.next(step));
}

TEST_CASE("a pass returns the next step as an optional (spec I22)") {
  DistributedDataset distributed{Counting{3} | batch(2), 2};
  auto iterator = distributed.iterate(0);
  const auto first = iterator.get_next_as_optional();
  REQUIRE(first.has_value());
  CHECK(values(first.value()[1]) == std::vector<int>{1});
  CHECK(iterator.get_next_as_optional().has_value());
  CHECK_FALSE(iterator.get_next_as_optional().has_value());
  CHECK_FALSE(iterator.get_next_as_optional().has_value());
}

TEST_CASE("structures of arrays are divided together (spec I30)") {
  using Row = std::tuple<int, std::pair<float, TensorView<const int>>>;
  const Tensor<int> shared = iota<int>({2});
  const auto rows = Counting{3} | dist::data::map([&](int i) {
                      return Row{i, {static_cast<float>(10 * i), shared.view()}};
                    });
  DistributedDataset distributed{rows | batch(2), 2};
  auto iterator = distributed.iterate(0);
  decltype(distributed)::Value step;
  REQUIRE(iterator.next(step));
  CHECK(values(std::get<0>(step[1])) == std::vector<int>{1});
  CHECK(values(std::get<1>(step[1]).first) == std::vector<float>{10});
  CHECK(std::get<1>(step[1]).second.shape() == Shape{1, 2});
}

TEST_CASE("replicas receive slices of one batch without a copy") {
  DistributedDataset distributed{Counting{8} | batch(8) | dist::data::prefetch(1), 4};
  for (const auto& step : distributed)
    for (std::size_t replica = 1; replica < 4; ++replica) CHECK(step[replica].data() == step[0].data() + 2 * replica);
}

TEST_CASE("each loop is a new epoch with a new shuffle, and epochs can be selected (spec I21, I31)") {
  auto distributed =
      dist::data::distribute_dataset(Counting{32} | dist::data::shuffle(32, 1) | batch(32), 2, InputContext{1, 0, 2});
  std::vector<std::vector<int>> epochs;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const auto& step : distributed) epochs.push_back(values(step[0]));
  REQUIRE(epochs.size() == 2);
  CHECK(epochs[0] != epochs[1]);
  for (const auto& step : distributed.epoch(1)) CHECK(values(step[0]) == epochs[1]);
}

TEST_CASE("distributing a shuffled dataset again for every epoch prints one warning") {
  const auto shuffled = Counting{8} | dist::data::shuffle(8, 1) | batch(4);
  const auto said = [&](int epochs, auto&& train) {
    return testing::stderr_of([&] {
             unsetenv("DIST_WARNINGS");
             using Distributed = decltype(distribute(shuffled));
             std::construct_at(&dist::data::detail::same_order_again);  // resets the warning and its counters
             std::construct_at(
                 &dist::data::detail::passes<dist::data::PrefetchDataset<std::decay_t<decltype(shuffled)>>>);
             static_assert(
                 std::is_same_v<Distributed,
                                DistributedDataset<dist::data::PrefetchDataset<std::decay_t<decltype(shuffled)>>>>);
             train(epochs);
           })
        .stderr_text;
  };
  const auto anew = [&](int epochs) {
    for (int epoch = 0; epoch < epochs; ++epoch)
      for ([[maybe_unused]] const auto& step : distribute(shuffled)) {
      }
  };
  CHECK(said(6, anew) ==
        "dist: a dataset was distributed again for every epoch, and is shuffled in the same order each time: call "
        "distribute_dataset once, before the loop over epochs. DIST_WARNINGS=0 silences this.\n");
  CHECK(said(3, anew).empty());
  CHECK(said(6, [&](int epochs) {
          for (int epoch = 0; epoch < epochs; ++epoch)
            static_cast<void>(distribute(shuffled, {.single_pass = true}).iterate(0));
        }).empty());
  CHECK(said(6, [&](int epochs) {
          auto distributed = distribute(shuffled);
          for (int epoch = 0; epoch < epochs; ++epoch) {
            for ([[maybe_unused]] const auto& step : distributed) {
            }
            static_cast<void>(distribute(shuffled).iterate(0));  // like an evaluation
          }
        }).empty());
  CHECK(said(6, [&](int epochs) {
          for (int epoch = 0; epoch < epochs; ++epoch) static_cast<void>(distribute(Counting{8} | batch(4)).iterate(0));
        }).empty());
}

TEST_CASE("at contract level 2 the rows of a finished step are poisoned, but not its source") {
  std::vector<TensorView<const int>> kept;
  const auto sliced_or_cycled = [&](const InputOptions& options) {
    kept.clear();
    auto distributed = distribute(Counting{10} | batch(4), options);
    auto iterator = distributed.iterate(0);
    decltype(distributed)::Value step;
    REQUIRE(iterator.next(step));
    for (const auto& rows : step) kept.push_back(rows);
    CHECK(values(kept[1]) == std::vector<int>{2, 3});
    REQUIRE(iterator.next(step));
    CHECK(values(kept[0]) == std::vector<int>{-1, -1});
    CHECK(values(kept[1]) == std::vector<int>{-1, -1});
    CHECK(values(step[0]) == std::vector<int>{4, 5});
  };
  sliced_or_cycled({.fetch_ahead = 2});
  sliced_or_cycled({.auto_shard_policy = AutoShardPolicy::data, .fetch_ahead = 2});

  Tensor<int> source = iota<int>({6, 1});
  DistributedDataset views{Views{source}, 2};
  CHECK(steps_of(views).size() == 3);
  for (int i = 0; i < 6; ++i) CHECK(source[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("batches are prefetched according to the options (spec I15, I16)") {
  for (const std::size_t ahead : {0U, 1U, 3U}) {
    auto distributed =
        dist::data::distribute_dataset(Counting{10} | batch(4), 2, InputContext{1, 0, 2}, {.fetch_ahead = ahead});
    CHECK(steps_of(distributed) == Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8, 9}, {}}});
  }
  for (const int ahead : {0, 1, 3}) {
    std::atomic<int> made{0};
    const auto counted = Counting{100} | batch(4) | dist::data::map([&](const Tensor<int>& rows) {
                           ++made;
                           return rows;
                         });
    const auto distributed = dist::data::distribute_dataset(counted, 2, InputContext{1, 0, 2},
                                                            {.fetch_ahead = static_cast<std::size_t>(ahead)});
    auto iterator = distributed.iterate(0);
    CHECK(settles_at(made, ahead));
    decltype(distributed)::Value step;
    for (int taken = 1; taken <= 5; ++taken) {
      REQUIRE(iterator.next(step));
      CHECK(settles_at(made, taken + ahead));
    }
  }
}

TEST_CASE("data: workers take slices of every batch in turn (spec I05, I06, I09, I10)") {
  const auto of_worker = [](std::size_t worker, AutoShardPolicy policy) {
    DistributedDataset distributed{Counting{12} | batch(4), 1, InputContext{2, worker, 2},
                                   InputOptions{.auto_shard_policy = policy}};
    return steps_of(distributed);
  };
  for (const auto policy : {AutoShardPolicy::data, AutoShardPolicy::automatic}) {
    CHECK(of_worker(0, policy) == Steps{{{0, 1}}, {{4, 5}}, {{8, 9}}});
    CHECK(of_worker(1, policy) == Steps{{{2, 3}}, {{6, 7}}, {{10, 11}}});
  }
  // Two replicas on each worker: worker 0 takes slices 0 and 2, worker 1 slices 1 and 3.
  DistributedDataset last{Counting{5} | batch(8), 2, InputContext{2, 1, 4}, sliced};
  CHECK(steps_of(last) == Steps{{{2, 3}, {}}});
}

TEST_CASE("off: workers that read everything take turns in the larger share (spec I04, I12)") {
  const auto of_worker = [](std::size_t worker, int elements) {
    DistributedDataset distributed{Counting{elements} | batch(5), 1, InputContext{2, worker, 2},
                                   InputOptions{.auto_shard_policy = AutoShardPolicy::off}};
    return steps_of(distributed);
  };
  CHECK(of_worker(0, 10) == Steps{{{0, 1, 2}}, {{3, 4}}, {{5, 6, 7}}, {{8, 9}}});
  CHECK(of_worker(1, 10) == Steps{{{0, 1}}, {{2, 3, 4}}, {{5, 6}}, {{7, 8, 9}}});
  CHECK(of_worker(1, 6) == Steps{{{0, 1}}, {{2, 3, 4}}, {{5}}});
}

TEST_CASE("the cardinality of a distributed dataset is its number of steps (spec I27)") {
  const auto count = [](auto dataset, const InputOptions& options = {}) {
    return DistributedDataset{std::move(dataset), 2, options}.cardinality();
  };
  constexpr InputOptions drop{.last_step = Remainder::drop};
  const auto partial = Counting{10} | batch(4);
  const auto full = Counting{8} | batch(4);
  CHECK(count(partial) == Cardinality::known(3));
  CHECK(count(partial, sliced) == Cardinality::known(3));
  const auto same = [](const Tensor<int>& rows) { return rows; };
  CHECK(count(partial | dist::data::map(same)) == Cardinality::unknown());
  CHECK(count(partial | dist::data::map(same, dist::data::RowCount::kept)) == Cardinality::known(3));
  CHECK(count(partial, drop) == Cardinality::unknown());
  CHECK(count(full, drop) == Cardinality::known(2));
  CHECK(count(partial | dist::data::take(2)) == Cardinality::known(2));
  CHECK(count(partial | dist::data::repeat(2)) == Cardinality::unknown());
  CHECK(count(full | dist::data::repeat(2) | dist::data::shuffle(2)) == Cardinality::known(4));
  CHECK(count(full | dist::data::repeat()) == Cardinality::infinite());
  CHECK(count(full | dist::data::filter([](const Tensor<int>&) { return true; })) == Cardinality::unknown());
  CHECK(count(Counting{10, Cardinality::unknown()} | batch(4)) == Cardinality::unknown());
  CHECK(DistributedDataset(full, 1, InputContext{2, 0, 2}, {.auto_shard_policy = AutoShardPolicy::off}).cardinality() ==
        Cardinality::known(4));
  CHECK(DistributedDataset(full, 1, InputContext{2, 0, 2}, sliced).cardinality() == Cardinality::known(2));
}

TEST_CASE("the steady state does not allocate, even with partial batches") {
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

TEST_CASE("results of map for batches can be distributed if they have rows (spec I02)") {
  const auto paired = Counting{4} | batch(4) | dist::data::map([](const Tensor<int>& rows) {
                        return Example{rows, Tensor<int>{Shape{rows.rows() - 1}}};
                      });
  DistributedDataset uneven{paired, 2};
  CHECK_THROWS_WITH_AS(static_cast<void>(uneven.begin()), doctest::Contains("4 features, 3 labels"), ShapeMismatch);
}

TEST_CASE("batches without rows are skipped (spec I24)") {
  const auto emptied = Counting{4} | batch(2) | dist::data::map([](const Tensor<int>& rows) {
                         return rows[0] == 0 ? Tensor<int>{Shape{0}} : rows;
                       });
  DistributedDataset by_cycle{emptied, 2};
  CHECK(by_cycle.cardinality() == Cardinality::unknown());
  DistributedDataset by_slices{emptied, 2, sliced};
  CHECK(by_slices.cardinality() == Cardinality::unknown());
  std::vector<int> seen;
  for (const auto& step : by_cycle.epoch(0))
    for (const auto& rows : step) seen.push_back(rows[0]);
  CHECK(seen == std::vector<int>{2, 3});
  const auto scalars =
      Counting{4} | batch(2) | dist::data::map([](const Tensor<int>&) { return Tensor<int>{Shape{}}; });
  DistributedDataset without_axes{scalars, 2};
  CHECK_THROWS_WITH_AS(static_cast<void>(without_axes.begin()), doctest::Contains("A scalar has no rows"),
                       ShapeMismatch);
}

TEST_CASE("zero replicas, and workers of different size, are rejected (spec I01)") {
  CHECK_THROWS_WITH_AS((DistributedDataset{Counting{4} | batch(2), 0}),
                       doctest::Contains("the number of replicas is 0"), InvalidArgument);
  CHECK_THROWS_WITH_AS((DistributedDataset{Counting{4} | batch(2), 2, InputContext{2, 0, 3}, InputOptions{}}),
                       doctest::Contains("input pipeline 0 of 2, 3 replicas in sync, 2 of them here"), InvalidArgument);
}
