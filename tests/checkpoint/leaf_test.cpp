#include <dist/checkpoint/leaf.hpp>

#include <cstdint>
#include <type_traits>

#include <dist/core/reduce_op.hpp>
#include <dist/strategy/default.hpp>
#include <dist/variable/distributed_variable.hpp>

#include <doctest/doctest.h>

using dist::Tensor;
using dist::detail::LeafElement;
using dist::detail::restore_leaf;
using dist::detail::save_leaf;
using dist::detail::Snapshot;

TEST_CASE("variables and numbers are leaves: saved as tensors, and restored from them") {
  dist::Default strategy;
  auto scope = strategy.scope();
  auto variable = strategy.variable<float>(dist::Shape{2}, 1.5F);
  std::int64_t epoch = 4;
  static_assert(std::is_same_v<LeafElement<decltype(variable), decltype(scope)>, float>);
  static_assert(std::is_same_v<LeafElement<std::int64_t, decltype(scope)>, std::int64_t>);
  Snapshot snapshot{0, 1};
  save_leaf("variable", variable, scope, snapshot);
  save_leaf("epoch", epoch, scope, snapshot);
  REQUIRE(snapshot.local_tensors().size() == 2);
  CHECK(snapshot.local_tensors()[0].shape == dist::Shape{2});
  CHECK(snapshot.local_tensors()[1].type == dist::io::ElementType::i64);
  restore_leaf(variable, scope, Tensor<float>{{2}, {3, 4}});
  restore_leaf(epoch, scope, Tensor<std::int64_t>{{}, {9}});
  CHECK(variable.read(scope)[1] == 4);
  CHECK(epoch == 9);
}
