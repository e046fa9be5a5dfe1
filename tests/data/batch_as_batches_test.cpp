#include <dist/data/batch.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/generator.hpp>

using dist::Shape;
using dist::Tensor;
using dist::data::as_batches;
using dist::data::Cardinality;
using dist::data::DistributedDataset;
using dist::data::RebatchRule;
using dist_test::iota;
using dist_test::values;

namespace {

/// Batches of 3, 2 and 1 rows with the values 0, 1, ….
auto shrinking() {
  return dist::data::generator(
      [] {
        return [rows = std::size_t{4}]() mutable {
          return --rows > 0 ? std::optional{iota<int>(Shape{rows})} : std::nullopt;
        };
      },
      Cardinality::known(3));
}

std::vector<std::vector<int>> received(auto dataset, RebatchRule rule) {
  DistributedDataset distributed{std::move(dataset), 2};
  CHECK(distributed.rebatch_rule() == rule);
  std::vector<std::vector<int>> all;
  for (const auto& step : distributed)
    for (const auto& rows : step) all.push_back(values(rows));
  return all;
}

}  // namespace

TEST_CASE("batches of unknown size are divided separately (spec I02, I05)") {
  static_assert(!dist::data::is_batched<decltype(shrinking())>);
  CHECK(received(shrinking() | as_batches(), RebatchRule::by_slices) ==
        std::vector<std::vector<int>>{{0, 1}, {2}, {0}, {1}, {0}, {}});
}

TEST_CASE("batches with a declared size are joined (spec I02, I03)") {
  CHECK(received(shrinking() | as_batches(3), RebatchRule::by_cycle) ==
        std::vector<std::vector<int>>{{0, 1}, {2}, {0, 1}, {0}});
}
