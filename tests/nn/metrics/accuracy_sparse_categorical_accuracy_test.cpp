#include <dist/nn/metrics/accuracy.hpp>

#include <cstdint>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metrics/mean_of.hpp>

#include "nn/keras/compare_metric.hpp"

namespace nn = dist::nn;

namespace {

dist::Tensor<float> scores() {
  dist::Tensor<float> tensor{dist::Shape{4, 3}};
  const float values[] = {0, 1, 0, 5, 5, 1, -3, -2, -1, 9, 0, 0};  // largest: 1; 0 and 1; 2; 0
  for (std::size_t i = 0; i < 12; ++i) tensor[i] = values[i];
  return tensor;
}

dist::Tensor<std::int32_t> labels(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
  dist::Tensor<std::int32_t> tensor{dist::Shape{4}};
  tensor[0] = a, tensor[1] = b, tensor[2] = c, tensor[3] = d;
  return tensor;
}

auto measure(const nn::SparseCategoricalAccuracy& accuracy, const auto& outputs, const auto& given) {
  return nn::detail::measure_rows(dist::Cpu::Queue{}, accuracy, outputs, given);
}

struct Outputs {
  dist::TensorView<const float> values;
  dist::TensorView<float> gradient;
};

}  // namespace

TEST_CASE("SparseCategoricalAccuracy counts rows whose first largest output is the label's") {
  const nn::SparseCategoricalAccuracy accuracy;
  const auto outputs = scores();
  CHECK(measure(accuracy, outputs, labels(1, 0, 2, 0)).total == 4);
  CHECK(measure(accuracy, outputs, labels(1, 1, 2, 0)).total == 3);
  CHECK(measure(accuracy, outputs, labels(0, 1, 0, 1)).total == 0);
  CHECK(measure(accuracy, outputs, labels(-1, 3, 2, 0)).total == 2);
  CHECK(measure(accuracy, outputs, labels(1, 0, 2, 0)).count == 4);
}

TEST_CASE("empty batches count nothing, and other shapes are rejected") {
  const nn::SparseCategoricalAccuracy accuracy;
  dist::Tensor<float> none{dist::Shape{0, 3}};
  dist::Tensor<std::uint8_t> no_labels{dist::Shape{0}};
  CHECK(measure(accuracy, none, no_labels).count == 0);
  CHECK_THROWS_AS(static_cast<void>(measure(accuracy, scores(), no_labels)), dist::ShapeMismatch);
}

TEST_CASE("two replicas measure outputs of a network (spec P15)") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Metric accuracy{strategy, nn::SparseCategoricalAccuracy{.name = "top"}};
  CHECK(accuracy.name() == "top");
  auto outputs = scores();
  const auto targets = labels(1, 1, 2, 0);
  strategy.run([&](auto& replica) {
    const dist::IndexRange mine = replica.shard(3);  // rows 0, 1 and row 2
    const auto values = outputs.view().rows(mine.begin, mine.size());
    accuracy.update(replica, Outputs{values, values}, targets.view().rows(mine.begin, mine.size()));
  });
  CHECK(accuracy.result(strategy.scope()) == 2.0 / 3);
}

TEST_CASE("results agree with Keras, with and without weights, under all strategies (spec P15)") {
  keras_metrics::compare<std::int64_t>(nn::SparseCategoricalAccuracy{}, keras_metrics::sparse_categorical_accuracy);
}

TEST_CASE("labels of elements count each, except for the ignored class") {
  const dist::Tensor<float> outputs{{2, 2, 3}, {0, 1, 0, 5, 4, 1, -3, -2, -1, 9, 0, 0}};  // largest: 1, 0; 2, 0
  const dist::Tensor<std::int32_t> of_elements{{2, 2}, {1, -1, 0, 0}};
  const auto tally = measure({}, outputs, of_elements);
  CHECK(tally.total == 2);
  CHECK(tally.count == 4);
  const auto without = measure({.ignore_class = -1}, outputs, of_elements);
  CHECK(without.total == 2);
  CHECK(without.count == 3);
  const dist::Tensor<float> of_rows{{2}, {1, 10}}, of_each{{2, 2}, {1, 2, 3, 4}};
  const auto weighted = [&](const auto& measure, const auto& weights) {
    return nn::detail::measure_rows(dist::Cpu::Queue{}, measure, outputs, of_elements, weights);
  };
  CHECK(weighted(nn::SparseCategoricalAccuracy{.ignore_class = -1}, of_rows).total == 11);
  CHECK(weighted(nn::SparseCategoricalAccuracy{.ignore_class = -1}, of_rows).count == 21);
  CHECK(weighted(nn::SparseTopKCategoricalAccuracy{.k = 1, .ignore_class = -1}, of_each).total == 5);
  CHECK(weighted(nn::SparseTopKCategoricalAccuracy{.k = 1, .ignore_class = -1}, of_each).count == 8);
  const nn::MeanOf<nn::SparseCategoricalCrossentropy> mean{.loss = {.ignore_class = -1}};
  CHECK(mean(outputs, of_elements).count == 3);
  CHECK(mean(outputs, of_elements, of_rows).count == 21);
  const dist::Tensor<float> one_hot{{2, 2, 3}, {0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0}};
  const auto categorical = nn::detail::measure_rows(dist::Cpu::Queue{}, nn::CategoricalAccuracy{}, outputs, one_hot);
  CHECK(categorical.total == 3);
  CHECK(categorical.count == 4);
}
