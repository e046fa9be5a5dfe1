#include <dist/variable/make_sharded_variable.hpp>

#include <cstddef>
#include <cstdlib>
#include <vector>

#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/stderr_of.hpp>
#include <support/what_throws.hpp>

using dist::FixedShards;
using dist::IndexRange;
using dist::Shape;
using dist::Tensor;
using dist::TensorView;

TEST_CASE("a variable is divided by the partitioner, and its shards have names (spec J05, J06)") {
  dist::Default strategy;
  const auto table = dist::sharded_variable<float>(strategy, FixedShards{4}, {10, 2}, 1.5F, "table");
  REQUIRE(table.shards().size() == 4);
  const std::size_t rows[] = {3, 3, 2, 2};
  for (std::size_t shard = 0; shard < 4; ++shard) {
    CHECK(table.shards()[shard].shape() == Shape{rows[shard], 2});
    CHECK(table.shards()[shard].name() == dist::concat("table/part_", shard));
  }
  CHECK(table.name() == "table");
  CHECK(table.shape() == Shape{10, 2});
  CHECK(table.read(strategy.scope())[19] == 1.5F);

  const auto half = dist::sharded_variable<double>(strategy, dist::MaxSizeShards{16}, {2, 2});
  CHECK(half.shards().size() == 2);  // the element size counts
}

TEST_CASE("a single shard has the name of the variable (spec J06)") {
  dist::Default strategy;
  const auto bias = dist::sharded_variable<float>(strategy, dist::MinSizeShards{}, {10}, 0, "bias");
  REQUIRE(bias.shards().size() == 1);
  CHECK(bias.shards()[0].name() == "bias");
}

TEST_CASE("each shard has its rows of the initial value (spec J07)") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  const Tensor<int> values{{3, 2}, {1, 2, 3, 4, 5, 6}};
  const auto check = [&](const auto& initial) {
    const auto variable =
        dist::sharded_variable<int, dist::OnWrite, dist::Sum>(strategy, FixedShards{2}, {3, 2}, initial);
    CHECK(variable.read(strategy.scope()) == values);
    CHECK(variable.shards()[1].component(strategy.scope(), 1)[1] == 6);
  };
  check(values);
  check(values.view());
  check(std::vector<int>{1, 2, 3, 4, 5, 6});
  std::size_t calls = 0;
  check([&](TensorView<int> whole) {
    ++calls;
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<int>(i + 1);
  });
  CHECK(calls == 1);
  std::vector<IndexRange> asked;
  check([&](TensorView<int> part, IndexRange rows) {
    asked.push_back(rows);
    CHECK(part.shape() == Shape{rows.size(), 2});
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = static_cast<int>(2 * rows.begin + i + 1);
  });
  CHECK(asked == std::vector<IndexRange>{{0, 2}, {2, 3}});
}

TEST_CASE("an initial value of another shape is rejected with the variable's name (spec J07)") {
  dist::Default strategy;
  CHECK(
      support::what_throws<dist::ShapeMismatch>([&] {
        static_cast<void>(dist::sharded_variable<int>(strategy, FixedShards{2}, {3, 2}, Tensor<int>{{2, 2}}, "table"));
      }).starts_with("A value does not fit variable 'table' (the value has shape [2, 2], the variable [3, 2])"));
  CHECK(support::what_throws<dist::ShapeMismatch>(
            [&] { static_cast<void>(dist::sharded_variable<int>(strategy, FixedShards{2}, {}, 1, "step")); }) ==
        "Variable 'step' cannot be divided into shards (it is a scalar). Give it rows, or make it with "
        "strategy.variable.");
}

TEST_CASE("a large initial value that is allocated whole gives a warning (spec J07)") {
  const auto ending = testing::stderr_of([] {
    unsetenv("DIST_WARNINGS");
    dist::detail::warn_of_whole_value("small", {1'000'000'000});
    dist::detail::warn_of_whole_value("large", {1'000'000'001});
  });
  CHECK(ending.stderr_text ==
        "dist: variable 'large' of shape [1000000001] is divided into shards, but its whole initial value is made "
        "first. A function that also takes the rows of a shard, `(TensorView<T> part, IndexRange rows)`, needs memory "
        "only for these rows.\n");
}
