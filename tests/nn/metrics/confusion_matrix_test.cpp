#include <dist/nn/metrics/confusion_matrix.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dist/nn/metrics/cell_counts.hpp>

#include <doctest/doctest.h>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;
namespace keras = keras_metrics;

TEST_CASE("counts agree with TensorFlow, with and without weights, and the result is the accuracy (spec P15)") {
  keras::compare<std::int32_t>(nn::ConfusionMatrix{.classes = 3}, keras::sparse_categorical_accuracy);
  keras::Batch<float, std::uint8_t> batch{keras::sparse_categorical_accuracy};
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Metric metric{strategy, nn::ConfusionMatrix{.classes = 3}};
  const auto check = [&](const std::array<double, 9>& expected) {
    const dist::Tensor<double> matrix = metric.counts(strategy.scope());
    CHECK(matrix.shape() == dist::Shape{3, 3});
    for (std::size_t i = 0; i < 9; ++i) CHECK(matrix[i] == expected[i]);
  };
  strategy.run([&](auto& replica) {
    const dist::IndexRange mine = replica.shard(8);
    metric.update(replica, batch.outputs.view().rows(mine.begin, mine.size()),
                  batch.targets.view().rows(mine.begin, mine.size()));
  });
  check(keras::confusion_matrix);
  metric.reset(strategy.scope());
  strategy.run([&](auto& replica) {
    const dist::IndexRange mine = replica.shard(8);
    metric.update(replica, batch.outputs.view().rows(mine.begin, mine.size()),
                  batch.targets.view().rows(mine.begin, mine.size()),
                  batch.sample_weights.view().rows(mine.begin, mine.size()));
  });
  check(keras::weighted_confusion_matrix);
}

TEST_CASE("labels and outputs of other classes are rejected") {
  dist::Default strategy;
  CHECK_THROWS_AS((nn::Metric{strategy, nn::ConfusionMatrix{.classes = 0}}), dist::InvalidArgument);
  nn::Metric metric{strategy, nn::ConfusionMatrix{.classes = 4}};
  dist::Tensor<float> outputs{dist::Shape{2, 3}};
  dist::Tensor<std::int32_t> labels{dist::Shape{2}};
  CHECK_THROWS_WITH_AS(metric.update(strategy.scope(), outputs, labels),
                       "confusion_matrix got outputs with a different number of classes (it has 4, the outputs have "
                       "shape [2, 3]). Set .classes to the number of the network's outputs.",
                       dist::ShapeMismatch);
  outputs.resize(dist::Shape{2, 4});
  for (const std::int32_t wrong : {-1, 4}) {
    labels[1] = wrong;
    CHECK_THROWS_WITH_AS(
        metric.update(strategy.scope(), outputs, labels),
        dist::concat("Label ", wrong,
                     " of example 1 is not a class (there are 4 classes, 0 to 3). Number the labels from 0.")
            .c_str(),
        dist::InvalidArgument);
  }
  labels.resize(dist::Shape{1});
  CHECK_THROWS_AS(metric.update(strategy.scope(), outputs, labels), dist::ShapeMismatch);
  CHECK(metric.result(strategy.scope()) == 0);
}

TEST_CASE("counting cell by cell, as on devices, agrees with counting by rows") {
  const keras::Batch<float, std::int32_t> batch{keras::sparse_categorical_accuracy};
  std::vector<double> counts(9);
  const nn::detail::CountIntoCell<nn::ConfusionMatrix, float, std::int32_t, nn::detail::GivenWeight<float, float>>
      into_cell{nn::ConfusionMatrix{.classes = 3}, batch.outputs.data(), batch.targets.data(), 3, 1, 8,
                {batch.sample_weights.data(), 1},  counts.data()};
  for (std::size_t cell = 0; cell < 9; ++cell) into_cell(cell);
  for (std::size_t cell = 0; cell < 9; ++cell) CHECK(counts[cell] == keras::weighted_confusion_matrix[cell]);
}

TEST_CASE("a confusion matrix counts labels of elements, except for the ignored class") {
  const dist::Tensor<float> outputs{{1, 3, 2}, {0, 1, 5, 4, 2, 3}};  // largest: 1, 0, 1
  const dist::Tensor<std::int32_t> labels{{1, 3}, {1, -1, 0}};
  std::vector<double> counts(4);
  nn::detail::count_cells(dist::Cpu::Queue{}, nn::ConfusionMatrix{.classes = 2, .ignore_class = -1}, std::span{counts},
                          outputs, labels);
  CHECK(counts == std::vector<double>{0, 1, 0, 1});
}
