#include <dist/nn/losses/count_labels.hpp>

#include <cstdint>

#include <dist/core/tensor.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("count_labels counts the labels of all replicas, without the ignored ones") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  const dist::Tensor<std::int32_t> labels{dist::Shape{2, 3}, {0, -1, 7, -1, -1, 2}};
  strategy.run([&](auto& replica) {
    // Replica 0 has both rows, replica 1 the second one, replica 2 none.
    const std::size_t first = replica.replica_id().index();
    const auto mine = dist::TensorView<const std::int32_t>{labels}.rows(first, 2 - first);
    CHECK(nn::count_labels(replica, mine) == 9);
    CHECK(nn::count_labels(replica, mine, -1) == 4);
    CHECK(nn::count_labels(replica, mine, 7) == 8);
  });
}

TEST_CASE("unsigned labels are ignored by their number") {
  dist::Default strategy;
  const dist::Tensor<std::uint8_t> labels{dist::Shape{3}, {255, 0, 255}};
  CHECK(strategy.run([&](auto& replica) { return nn::count_labels(replica, labels, 255); }) == 1);
}

TEST_CASE("the examples that count in a loss are rows, rows of the last axis, or labels that are not ignored") {
  const dist::Tensor<float> outputs{dist::Shape{2, 3, 4}};
  const dist::Tensor<std::int64_t> labels{dist::Shape{2, 3}, {0, -1, 3, -1, -1, 2}};
  const auto count = [&](const auto& loss, const auto& targets) {
    return nn::detail::counted_examples(dist::Cpu::Queue{}, loss, nn::values_of(outputs), nn::values_of(targets));
  };
  CHECK(count(nn::MeanSquaredError{}, outputs) == 2);
  CHECK(count(nn::SparseCategoricalCrossentropy{}, labels) == 6);
  CHECK(count(nn::SparseCategoricalCrossentropy{.ignore_class = -1}, labels) == 3);
}
