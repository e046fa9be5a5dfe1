// Sharded variables in checkpoints: one tensor for any number of shards.
#include <cstddef>
#include <string>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/checkpoint_reader.hpp>
#include <dist/checkpoint/load_weights.hpp>
#include <dist/checkpoint/save_weights.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/make_sharded_variable.hpp>

#include <doctest/doctest.h>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::Checkpoint;
using dist::FixedShards;
using dist::Shape;
using dist::Tensor;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

const Shape shape{7, 2};

Tensor<float> counted() {
  Tensor<float> tensor{shape};
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<float>(i + 1);
  return tensor;
}

template <class S>
auto table_of(S& strategy, std::size_t shards, float first = 0) {
  return dist::sharded_variable<float>(strategy, FixedShards{shards}, shape, first, "table");
}

/// A part of a program with a table and other values.
template <class Table>
struct Model {
  Table table;
  int steps = 0;
  void track(auto& visit) {
    visit("table", table);
    visit("steps", steps);
  }
};

}  // namespace

TEST_CASE("a sharded variable is one tensor in a checkpoint, for any number of shards (spec K11, N15)") {
  const support::TemporaryFolder folder;
  Mirrored strategy{2};
  Model<decltype(table_of(strategy, 3))> model{table_of(strategy, 3), 5};
  model.table.assign(strategy.scope(), counted());
  Checkpoint checkpoint{strategy};
  checkpoint.add("model", model);
  checkpoint.save(folder.path("saved"));

  const dist::detail::CheckpointReader reader{folder.path("saved")};
  CHECK(reader.keys() == std::vector<std::string>{"model/steps", "model/table"});
  CHECK(reader.find("model/table")->shape == shape);

  const auto check = [&](auto& other, std::size_t shards) {
    CAPTURE(shards);
    Model<decltype(table_of(other, shards))> restored{table_of(other, shards)};
    Checkpoint into{other};
    into.add("model", restored);
    into.restore(folder.path("saved"));
    CHECK(restored.table.read(other.scope()) == counted());
    CHECK(restored.steps == 5);
  };
  dist::Default plain;
  for (const std::size_t shards : {1U, 2U, 3U, 7U}) {
    check(plain, shards);
    check(strategy, shards);
  }
}

TEST_CASE("a sharded variable is restored into an undivided one, and vice versa (spec K11)") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  const auto scope = strategy.scope();
  auto divided = table_of(strategy, 3);
  auto whole = strategy.variable<float>(shape, counted());
  {
    Checkpoint checkpoint{strategy};
    checkpoint.add("table", whole);
    checkpoint.save(folder.path("whole"));
  }
  {
    Checkpoint checkpoint{strategy};
    checkpoint.add("table", divided);
    checkpoint.restore(folder.path("whole"));
    CHECK(divided.read(scope) == counted());
    CHECK(divided.shards()[2].read(scope)[0] == 11);
    checkpoint.save(folder.path("divided"));
  }
  whole.assign(scope, 0);
  Checkpoint checkpoint{strategy};
  checkpoint.add("table", whole);
  checkpoint.restore(folder.path("divided"));
  CHECK(Tensor<float>{whole.read(scope)} == counted());
}

TEST_CASE("a sharded variable created later is restored when it is added (spec K11, N10)") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  {
    auto table = table_of(strategy, 2);
    table.assign(strategy.scope(), counted());
    Checkpoint checkpoint{strategy};
    checkpoint.add("table", table);
    checkpoint.save(folder.path("saved"));
  }
  Checkpoint checkpoint{strategy};
  checkpoint.restore(folder.path("saved"));
  CHECK(checkpoint.unrestored() == std::vector<std::string>{"table"});
  auto table = table_of(strategy, 5);
  checkpoint.add("table", table);
  CHECK(table.read(strategy.scope()) == counted());
  CHECK(checkpoint.unrestored().empty());
}

TEST_CASE("another shape than the saved one is rejected before any shard changes (spec K11)") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  auto table = dist::sharded_variable<float>(strategy, FixedShards{2}, {8, 2}, 3.0F);
  Checkpoint checkpoint{strategy};
  checkpoint.add("table", table);
  checkpoint.save(folder.path("saved"));
  auto shorter = table_of(strategy, 2, 4.0F);
  Checkpoint into{strategy};
  into.add("table", shorter);
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          into.restore(folder.path("saved"));
        }).starts_with("'table' does not have the shape that is saved in the checkpoint"));
  CHECK(shorter.read(strategy.scope())[0] == 4);
  CHECK_THROWS_AS(shorter.restore(strategy.scope(), Tensor<float>{{8, 2}}), dist::ShapeMismatch);
}

TEST_CASE("weights of other programs are loaded into shards, and saved from them (spec K11)") {
  const support::TemporaryFolder folder;
  dist::Default strategy;
  Model<decltype(table_of(strategy, 3))> model{table_of(strategy, 3), 2};
  model.table.assign(strategy.scope(), counted());
  dist::save_weights(strategy, model, folder.path("weights.safetensors"));
  Model<decltype(table_of(strategy, 2))> loaded{table_of(strategy, 2)};
  dist::load_weights(strategy, loaded, folder.path("weights.safetensors"));
  CHECK(loaded.table.read(strategy.scope()) == counted());
}
