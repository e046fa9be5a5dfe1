#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

#include "nn/keras/compare_loss.hpp"

namespace nn = dist::nn;

namespace {

template <class T>
struct Outputs {
  dist::TensorView<const T> values;
  dist::TensorView<T> gradient;
};

template <class T>
dist::Tensor<T> logits_for(std::size_t rows, std::size_t classes) {
  dist::Tensor<T> logits{dist::Shape{rows, classes}};
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<T>(std::sin(1.7 * static_cast<double>(i)) * 3);
  return logits;
}

/// The definition in double: -log of the label's share of the exponentials.
template <class T>
double reference_loss(const dist::Tensor<T>& logits, std::size_t row, std::size_t label) {
  const std::size_t classes = logits.shape()[1];
  double sum = 0;
  for (std::size_t k = 0; k < classes; ++k) sum += std::exp(static_cast<double>(logits[row * classes + k]));
  return -std::log(std::exp(static_cast<double>(logits[row * classes + label])) / sum);
}

}  // namespace

TEST_CASE("value and gradient agree with the definition (spec P01, P02)") {
  dist::Default strategy;
  const auto logits = logits_for<float>(5, 4);
  dist::Tensor<std::int32_t> labels{dist::Shape{5}};
  for (std::size_t row = 0; row < 5; ++row) labels[row] = static_cast<std::int32_t>((row * 3) % 4);
  dist::Tensor<float> gradient{dist::Shape{5, 4}};
  const std::size_t global_batch = 8;  // constant, although this replica has 5 rows
  const auto loss = strategy.run([&](auto& replica) {
    return nn::sparse_categorical_crossentropy(replica, Outputs<float>{logits.view(), gradient.view()}, labels,
                                               global_batch);
  });
  double expected = 0;
  for (std::size_t row = 0; row < 5; ++row)
    expected += reference_loss(logits, row, static_cast<std::size_t>(labels[row]));
  CHECK(loss.total() == doctest::Approx(expected).epsilon(1e-6));
  CHECK(loss.examples() == 5);
  CHECK(static_cast<double>(loss.value()) == doctest::Approx(expected / 8).epsilon(1e-6));
  for (std::size_t row = 0; row < 5; ++row) {
    double sum = 0;
    for (std::size_t k = 0; k < 4; ++k) sum += std::exp(static_cast<double>(logits[row * 4 + k]));
    for (std::size_t k = 0; k < 4; ++k) {
      const double softmax = std::exp(static_cast<double>(logits[row * 4 + k])) / sum;
      const double onehot = k == static_cast<std::size_t>(labels[row]) ? 1 : 0;
      CHECK(static_cast<double>(gradient[row * 4 + k]) == doctest::Approx((softmax - onehot) / 8).epsilon(1e-5));
    }
  }
}

TEST_CASE("gradients agree with finite differences in double") {
  dist::Default strategy;
  auto logits = logits_for<double>(3, 5);
  dist::Tensor<std::int64_t> labels{dist::Shape{3, 1}};
  labels[0] = 4, labels[1] = 0, labels[2] = 2;
  dist::Tensor<double> gradient{dist::Shape{3, 5}};
  dist::Tensor<double> unused{dist::Shape{3, 5}};
  const auto loss = [&](dist::Tensor<double>& place) {
    return strategy.run([&](auto& replica) {
      return nn::sparse_categorical_crossentropy(replica, Outputs<double>{logits.view(), place.view()}, labels, 3)
          .value();
    });
  };
  loss(gradient);
  const double step = 1e-6;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double at = logits[i];
    logits[i] = at + step;
    const double above = loss(unused);
    logits[i] = at - step;
    const double below = loss(unused);
    logits[i] = at;
    CHECK(gradient[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-6));
  }
}

TEST_CASE("huge and tiny losses are precise") {
  const nn::SparseCategoricalCrossentropy loss;
  const std::vector<std::int32_t> first{0};
  const std::vector<float> far{1000.0f, -1000.0f};
  const std::vector<float> wrong{-1000.0f, 1000.0f};
  const std::vector<float> sure{20.0f, 0.0f};
  std::vector<float> gradient(2);
  const auto value = [&](const std::vector<float>& logits) {
    const auto row = nn::row_of(std::span<const float>{logits});
    const auto label = nn::row_of(std::span<const std::int32_t>{first});
    const float alone = loss.per_example(row, label);
    const float scaled = loss.per_example(row, label, 1.0f, nn::row_of(std::span<float>{gradient}));
    CHECK((alone == scaled || (std::isnan(alone) && std::isnan(scaled))));
    return alone;
  };
  CHECK(value(far) == 0.0f);
  CHECK(value(wrong) == 2000.0f);
  CHECK(gradient[0] == -1.0f);
  CHECK(gradient[1] == 1.0f);
  // log(1 + e^-20) is e^-20 to 9 digits; log of a float sum would give 0.
  CHECK(static_cast<double>(value(sure)) == doctest::Approx(std::exp(-20.0)).epsilon(1e-6));
  const std::vector<float> broken{NAN, 1.0f};
  CHECK(std::isnan(value(broken)));
}

TEST_CASE("the values of all replicas add up to the mean over the global batch (spec P01, P07)") {
  const auto logits = logits_for<float>(7, 3);
  dist::Tensor<std::uint8_t> labels{dist::Shape{7}};
  double expected = 0;
  for (std::size_t row = 0; row < 7; ++row) {
    labels[row] = static_cast<std::uint8_t>(row % 3);
    expected += reference_loss(logits, row, row % 3) / 7;
  }
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
    dist::Tensor<float> gradient{dist::Shape{7, 3}};
    const auto losses = strategy.run([&](auto& replica) {
      const dist::IndexRange mine = replica.shard(7);
      const Outputs<float> outputs{logits.view().rows(mine.begin, mine.size()),
                                   gradient.view().rows(mine.begin, mine.size())};
      return nn::sparse_categorical_crossentropy(replica, outputs, labels.view().rows(mine.begin, mine.size()), 7)
          .value();
    });
    CHECK(static_cast<double>(strategy.reduce(dist::sum, losses)) == doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("an empty batch and an empty global batch give 0, not NaN (spec P01)") {
  dist::Default strategy;
  dist::Tensor<float> logits{dist::Shape{0, 10}};
  dist::Tensor<std::int32_t> labels{dist::Shape{0}};
  for (const std::size_t global_batch : {0U, 4U}) {
    const auto loss = strategy.run([&](auto& replica) {
      return nn::sparse_categorical_crossentropy(replica, Outputs<float>{logits.view(), logits.view()}, labels,
                                                 global_batch);
    });
    CHECK(loss.value() == 0.0f);
    CHECK(loss.total() == 0.0);
  }
}

TEST_CASE("a label out of range is reported") {
  dist::Default strategy;
  dist::Tensor<float> logits{dist::Shape{3, 10}};
  dist::Tensor<std::int32_t> labels{dist::Shape{3}};
  const auto run = [&] {
    strategy.run([&](auto& replica) {
      static_cast<void>(
          nn::sparse_categorical_crossentropy(replica, Outputs<float>{logits.view(), logits.view()}, labels, 3));
    });
  };
  labels[1] = 10;
  CHECK_THROWS_WITH_AS(
      run(),
      "Label 10 of example 1 is not a class (the outputs have 10 classes, 0 to 9). Number the labels from 0, and "
      "give the last layer one output per class.",
      dist::InvalidArgument);
  labels[1] = -1;
  CHECK_THROWS_WITH_AS(
      run(),
      "Label -1 of example 1 is not a class (the outputs have 10 classes, 0 to 9). Number the labels from 0, and "
      "give the last layer one output per class.",
      dist::InvalidArgument);
  labels.resize(dist::Shape{2});
  CHECK_THROWS_AS(run(), dist::ShapeMismatch);
}

TEST_CASE("sample weights scale losses and gradients, and an empty batch has loss 0 (spec P01)") {
  dist::Default strategy;
  auto logits = logits_for<double>(3, 4);
  dist::Tensor<std::int32_t> labels{dist::Shape{3}};
  labels[0] = 1, labels[1] = 0, labels[2] = 3;
  dist::Tensor<double> weights{dist::Shape{3}};
  weights[0] = 2, weights[1] = 0, weights[2] = 0.5;
  dist::Tensor<double> gradient{dist::Shape{3, 4}};
  dist::Tensor<double> plain{dist::Shape{3, 4}};
  double value = 0;
  strategy.run([&](auto& replica) {
    static_cast<void>(
        nn::sparse_categorical_crossentropy(replica, Outputs<double>{logits.view(), plain.view()}, labels, 6));
    value = nn::sparse_categorical_crossentropy(replica, Outputs<double>{logits.view(), gradient.view()}, labels, 6,
                                                weights)
                .value();
  });
  CHECK(value == doctest::Approx((2 * reference_loss(logits, 0, 1) + 0.5 * reference_loss(logits, 2, 3)) / 6));
  for (std::size_t i = 0; i < 12; ++i) CHECK(gradient[i] == doctest::Approx(weights[i / 4] * plain[i]));

  dist::Tensor<double> none{dist::Shape{0, 4}};
  dist::Tensor<std::int32_t> no_labels{dist::Shape{0}};
  dist::Tensor<double> no_weights{dist::Shape{0}};
  strategy.run([&](auto& replica) {
    CHECK(nn::sparse_categorical_crossentropy(replica, Outputs<double>{none.view(), none.view()}, no_labels, 0,
                                              no_weights)
              .value() == 0.0);
  });
}

TEST_CASE("values and gradients agree with Keras, and gradients with finite differences") {
  namespace keras = keras_losses;
  keras::compare<std::int64_t>(nn::SparseCategoricalCrossentropy{}, keras::sparse_logits);
  keras::compare<std::uint8_t>(nn::SparseCategoricalCrossentropy{.from_logits = false}, keras::sparse_probabilities);
}

TEST_CASE("label smoothing agrees with the categorical cross-entropy, as in Keras") {
  keras_losses::Case smoothed = keras_losses::categorical_logits_smoothed;
  smoothed.targets = keras_losses::sparse_logits.targets;
  keras_losses::compare<std::int32_t>(nn::SparseCategoricalCrossentropy{.label_smoothing = 0.1f}, smoothed);
  // For probabilities that add up to 1, the two losses differ only by their epsilon.
  keras_losses::Case probabilities = keras_losses::categorical_probabilities_smoothed;
  probabilities.targets = keras_losses::sparse_logits.targets;
  keras_losses::Batch<double, std::int32_t> batch{probabilities};
  const nn::SparseCategoricalCrossentropy loss{.from_logits = false, .label_smoothing = 0.1f};
  CHECK(batch.loss(loss) == doctest::Approx(probabilities.loss).epsilon(1e-6));
  CHECK_THROWS_AS(batch.loss(nn::SparseCategoricalCrossentropy{.label_smoothing = 2}), dist::InvalidArgument);
}

namespace {

/// Logits of 2 rows of 3 elements of 4 classes, and their labels.
const dist::Tensor<double> of_elements{dist::Shape{2, 3, 4}, [] {
                                         const auto logits = logits_for<double>(6, 4);
                                         return std::vector<double>(logits.data(), logits.data() + logits.size());
                                       }()};
const dist::Tensor<std::int64_t> labels_of_elements{dist::Shape{2, 3}, {0, 3, -1, 2, -1, 1}};

struct Computed {
  double total;
  std::size_t examples;
  std::vector<double> gradient;
};
template <class... Weights>
Computed computed(const nn::SparseCategoricalCrossentropy& loss, dist::Shape shape, const auto& labels,
                  std::size_t global_batch, const Weights&... weights) {
  dist::Default strategy;
  dist::Tensor<double> gradient{shape};
  const Outputs<double> outputs{{of_elements.data(), shape}, gradient.view()};
  const auto found = strategy.run(
      [&](auto& replica) { return nn::compute_loss(loss, replica, outputs, labels, global_batch, weights...); });
  return {found.total(), found.examples(), {gradient.data(), gradient.data() + gradient.size()}};
}

}  // namespace

TEST_CASE("each label of elements is an example, with weights of elements or of rows") {
  const nn::SparseCategoricalCrossentropy loss;
  const dist::Tensor<std::int32_t> labels{dist::Shape{2, 3}, {0, 3, 1, 2, 2, 1}};
  const dist::Tensor<std::int32_t> flat{dist::Shape{6}, {0, 3, 1, 2, 2, 1}};
  const Computed expected = computed(loss, {6, 4}, flat, 6);
  const Computed found = computed(loss, {2, 3, 4}, labels, 6);
  CHECK(found.total == expected.total);
  CHECK(found.examples == 6);
  CHECK(found.gradient == expected.gradient);
  CHECK(computed(loss, {2, 3, 4}, dist::Tensor<std::int32_t>{dist::Shape{2, 3, 1}, {0, 3, 1, 2, 2, 1}}, 6).total ==
        expected.total);

  const dist::Tensor<double> of_rows{dist::Shape{2}, {2, 0.5}}, of_each{dist::Shape{2, 3}, {2, 2, 2, 0.5, 0.5, 0.5}},
      flat_weights{dist::Shape{6}, {2, 2, 2, 0.5, 0.5, 0.5}};
  const Computed weighted = computed(loss, {6, 4}, flat, 6, flat_weights);
  CHECK(computed(loss, {2, 3, 4}, labels, 6, of_rows).gradient == weighted.gradient);
  CHECK(computed(loss, {2, 3, 4}, labels, 6, of_each).total == weighted.total);
  CHECK_THROWS_AS(computed(loss, {2, 3, 4}, labels, 6, flat_weights), dist::ShapeMismatch);
  CHECK_THROWS_AS(computed(loss, {2, 3, 4}, labels, 2), dist::InvalidArgument);  // there are 6 examples

  std::vector<double> losses(6);
  nn::per_example_losses(loss, of_elements, labels, std::span{losses});
  double sum = 0;
  for (const double each : losses) sum += each;
  CHECK(sum == doctest::Approx(expected.total).epsilon(1e-14));
}

TEST_CASE("an error about labels of rows for outputs with more axes names a forgotten Flatten") {
  CHECK_THROWS_WITH_AS(
      static_cast<void>(computed({}, {2, 3, 4}, dist::Tensor<std::int32_t>{dist::Shape{2}}, 6)),
      "sparse_categorical_crossentropy got labels that do not fit the outputs (outputs [2, 3, 4], labels [2]). Give "
      "one "
      "label per example, [2, 3], or put nn::Flatten before the last nn::Dense: the outputs have rows [3, 4].",
      dist::ShapeMismatch);
}

TEST_CASE("ignored labels are left out of the loss, its gradient and the number of examples") {
  const nn::SparseCategoricalCrossentropy loss{.label_smoothing = 0.1F, .ignore_class = -1};
  const Computed found = computed(loss, {2, 3, 4}, labels_of_elements, 4);
  // The four others as rows.
  dist::Tensor<double> counted{dist::Shape{4, 4}}, slope{dist::Shape{4, 4}};
  const std::vector<std::size_t> places{0, 1, 3, 5};
  for (std::size_t i = 0; i < 16; ++i) counted[i] = of_elements[places[i / 4] * 4 + i % 4];
  const dist::Tensor<std::int64_t> labels{dist::Shape{4}, {0, 3, 2, 1}};
  dist::Default strategy;
  const auto expected = strategy.run([&](auto& replica) {
    return nn::compute_loss(nn::SparseCategoricalCrossentropy{.label_smoothing = 0.1F}, replica,
                            Outputs<double>{counted.view(), slope.view()}, labels, 4);
  });
  CHECK(found.total == expected.total());
  CHECK(found.examples == 4);
  for (std::size_t i = 0; i < 16; ++i) CHECK(found.gradient[places[i / 4] * 4 + i % 4] == slope[i]);
  for (const std::size_t ignored : {std::size_t{2}, std::size_t{4}})
    for (std::size_t k = 0; k < 4; ++k) CHECK(found.gradient[ignored * 4 + k] == 0);
  CHECK_THROWS_AS(computed({}, {2, 3, 4}, labels_of_elements, 6), dist::InvalidArgument);  // -1 is not a class
}
