#include <dist/nn/metrics/accuracy.hpp>

#include <cstdint>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

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
