#include <dist/checkpoint/leaf.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/reduce_op.hpp>
#include <dist/strategy/default.hpp>
#include <dist/variable/distributed_variable.hpp>

#include <doctest/doctest.h>

using dist::Tensor;
using dist::detail::AnyLeaf;
using dist::detail::AnyTensor;
using dist::detail::save_leaf;
using dist::detail::Snapshot;
using dist::detail::walk_leaves;
using dist::io::ElementType;

namespace {

template <class Variable>
struct Parts {
  Variable& of_variable;
  std::int64_t& of_epoch;
  void track(auto& visit) {
    visit("variable", of_variable);
    visit("epoch", of_epoch);
  }
};

}  // namespace

TEST_CASE("variables and numbers are leaves that are saved as tensors and restored") {
  dist::Default strategy;
  auto scope = strategy.scope();
  using Scope = decltype(scope);
  auto variable = strategy.variable<float>(dist::Shape{2}, 1.5F);
  std::int64_t epoch = 4;
  Parts<decltype(variable)> parts{variable, epoch};
  std::vector<std::string> keys;
  Snapshot snapshot{0, 1};
  walk_leaves<Scope>(parts, [&](std::string_view key, AnyLeaf& leaf, bool is_optional) {
    keys.emplace_back(key);
    CHECK(leaf.is_number() == (key == "epoch"));
    CHECK(leaf.type() == (key == "epoch" ? ElementType::i64 : ElementType::f32));
    CHECK_FALSE(is_optional);
    save_leaf(key, leaf, &scope, snapshot);
  });
  CHECK(keys == std::vector<std::string>{"variable", "epoch"});
  REQUIRE(snapshot.local_tensors().size() == 2);
  CHECK(snapshot.local_tensors()[0].shape == dist::Shape{2});
  CHECK(snapshot.local_tensors()[1].type == ElementType::i64);
  REQUIRE(snapshot.numbers().size() == 1);
  CHECK(snapshot.numbers()[0].value == "4");
  walk_leaves<Scope>(parts, [&](std::string_view key, AnyLeaf& leaf, bool) {
    leaf.restore(&scope, key == "epoch" ? AnyTensor::of(Tensor<std::int64_t>{{}, {9}})
                                        : AnyTensor::of(Tensor<float>{{2}, {3, 4}}));
  });
  CHECK(variable.read(scope)[1] == 4);
  CHECK(epoch == 9);
}
