#include <dist/nn/hlo/traced_fit.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/hlo/backend.hpp>
#include <dist/nn/hlo/dense.hpp>
#include <dist/nn/hlo/traced_metric.hpp>
#include <dist/nn/hlo/traced_optimizer.hpp>
#include <dist/nn/hlo/traced_regularizer.hpp>
#include <dist/strategy/compiled_step.hpp>
#include <dist/train.hpp>
#include <support/four_xla_cpus.hpp>
#include <support/what_throws.hpp>

namespace nn = dist::nn;
namespace data = dist::data;
using dist::Shape;
using dist::Tensor;

namespace {

using OnHost = dist::Mirrored<dist::ThreadAllReduce>;
using OnXla = dist::Mirrored<dist::ThreadAllReduce, dist::Xla>;
using Net = nn::Sequential<nn::Input<3>, nn::Dense<6, nn::Tanh>, nn::Dense<3>>;
using OneOutput = nn::Sequential<nn::Input<3>, nn::Dense<1>>;

/// 10 examples of three classes, in global batches of 4; the last batch has 2 rows.
constexpr std::size_t examples = 10;
constexpr std::size_t global_batch = 4;
Tensor<float> inputs() {
  Tensor<float> x{Shape{examples, 3}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i)));
  return x;
}
template <class T>
Tensor<T> column(std::size_t divisor) {
  Tensor<T> y{Shape{examples}};
  for (std::size_t i = 0; i < examples; ++i) y[i] = static_cast<T>(i % divisor);
  return y;
}

/// Calls `use(model, compiled)` with a model on the host and a model that compiles its steps.
template <class Net, class L, class Use, class... Ms>
void with_both(const L& loss, const Use& use, const Ms&... metrics) {
  OnHost on_host{2};
  nn::Network<Net> net{on_host, 3};
  nn::Model model{on_host, net, nn::Adam{.learning_rate = 0.05F}, loss, metrics...};
  OnXla strategy{2};
  nn::Network<Net, nn::Xla> compiled_net{strategy, 3};
  nn::Model compiled{strategy, compiled_net, nn::Adam{.learning_rate = 0.05F}, loss, metrics...};
  use(model, compiled);
}

void check_same(const nn::Logs& logs, const nn::Logs& expected) {
  REQUIRE(logs.names() == expected.names());
  for (const nn::Logs::Entry& entry : expected) {
    CAPTURE(entry.name);
    CHECK(logs[entry.name] == doctest::Approx(entry.value).epsilon(1e-5));
  }
}
void check_same(const nn::History& history, const nn::History& expected) {
  REQUIRE(history.series().size() == expected.series().size());
  for (const nn::History::Series& series : expected.series())
    for (std::size_t epoch = 0; epoch < series.values.size(); ++epoch) {
      CAPTURE(series.name);
      CAPTURE(epoch);
      CHECK(history[series.name][epoch] == doctest::Approx(series.values[epoch]).epsilon(1e-5));
    }
}

}  // namespace

TEST_CASE("a model with compiled steps learns, measures and predicts as on the host") {
  const auto use = [](auto& model, auto& compiled) {
    const auto sets = data::tensor_slices(inputs(), column<std::int32_t>(3)) | data::batch(global_batch);
    const auto fit = [&](auto& each) {
      return each.fit(sets, {.epochs = 3, .validation = sets, .class_weight = {1, 0.5F, 2}, .verbose = 0});
    };
    check_same(fit(compiled), fit(model));
    const auto fit_arrays = [&](auto& each) {
      return each.fit(inputs(), column<std::int32_t>(3), column<float>(4),
                      {.epochs = 5, .initial_epoch = 3, .verbose = 0, .batch_size = 3});
    };
    check_same(fit_arrays(compiled), fit_arrays(model));
    check_same(compiled.evaluate(sets, {.verbose = 0}), model.evaluate(sets, {.verbose = 0}));
    check_same(compiled.train_on_batch(inputs(), column<std::int32_t>(2), {.class_weight = {1, 3}}),
               model.train_on_batch(inputs(), column<std::int32_t>(2), {.class_weight = {1, 3}}));
    const Tensor<float> expected = model.predict(inputs(), {.verbose = 0, .batch_size = 4});
    const Tensor<float> predicted = compiled.predict(inputs(), {.verbose = 0, .batch_size = 4});
    REQUIRE(predicted.shape() == Shape{examples, 3});
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(predicted[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  };
  with_both<Net>(nn::SparseCategoricalCrossentropy{}, use, nn::SparseCategoricalAccuracy{},
                 nn::Weighted{nn::SparseCategoricalAccuracy{}});
}

TEST_CASE("a model with compiled steps supports a regularized sum as loss, and targets other than classes") {
  const auto use = [](auto& model, auto& compiled) {
    const auto fit = [&](auto& each) {
      return each.fit(inputs(), inputs(), {.epochs = 2, .verbose = 0, .batch_size = 4});
    };
    check_same(fit(compiled), fit(model));
    CHECK(support::what_throws<dist::InvalidArgument>([&] {
            compiled.fit(inputs(), inputs(), {.class_weight = {1, 2}, .verbose = 0});
          }).find("class_weight for targets that are not classes") != std::string::npos);
  };
  with_both<Net>(nn::Regularized{nn::Reduced{nn::MeanSquaredError{}, nn::Reduction::Sum{}}, nn::L2{0.125F}}, use,
                 nn::MeanOf{nn::MeanAbsoluteError{}});
}

TEST_CASE("class weights also apply to a single output, for any number of classes") {
  const auto use = [](auto& model, auto& compiled) {
    const auto fit = [&](auto& each, std::vector<float> weights) {
      return each.fit(inputs(), column<std::int32_t>(2),
                      {.epochs = each.optimizer().iterations(each.strategy().scope()) == 0 ? std::size_t{1} : 2,
                       .initial_epoch = each.optimizer().iterations(each.strategy().scope()) == 0 ? std::size_t{0} : 1,
                       .class_weight = std::move(weights),
                       .verbose = 0,
                       .batch_size = 4});
    };
    check_same(fit(compiled, {1, 3}), fit(model, {1, 3}));
    check_same(fit(compiled, {0.5F, 2, 9}), fit(model, {0.5F, 2, 9}));
    const auto few = compiled.train_on_batch(inputs(), column<std::int32_t>(2), {.class_weight = {1}});
    CHECK(std::isnan(few["loss"]));  // a replica function throws instead
  };
  with_both<OneOutput>(nn::MeanSquaredError{}, use);
}

TEST_CASE("a model with compiled steps learns from labels of elements and ignores a class as on the host") {
  using OfElements = nn::Sequential<nn::Input<2, 3>, nn::Dense<6, nn::Tanh>, nn::Dense<3>>;
  Tensor<float> x{Shape{examples, 2, 3}}, weights{Shape{examples, 2}};
  Tensor<std::int32_t> labels{Shape{examples, 2}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i)));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int32_t>(i % 4) - 1;
    weights[i] = static_cast<float>(i % 3) + 0.5F;
  }
  const nn::SparseCategoricalCrossentropy loss{.ignore_class = -1};
  const auto use = [&](auto& model, auto& compiled) {
    const auto fit = [&](auto& each) { return each.fit(x, labels, {.epochs = 2, .verbose = 0, .batch_size = 4}); };
    check_same(fit(compiled), fit(model));
    const auto fit_weighted = [&](auto& each) {
      return each.fit(x, labels, weights, {.epochs = 2, .verbose = 0, .batch_size = 4});
    };
    check_same(fit_weighted(compiled), fit_weighted(model));
    const auto by_class = [&](auto& each) {
      return each.train_on_batch(x, labels, column<float>(4), {.class_weight = {1, 0.5F, 2}});
    };
    check_same(by_class(compiled), by_class(model));
    check_same(compiled.evaluate(x, labels, {.verbose = 0}), model.evaluate(x, labels, {.verbose = 0}));
  };
  with_both<OfElements>(loss, use, nn::Weighted{nn::SparseCategoricalAccuracy{.ignore_class = -1}}, nn::MeanOf{loss},
                        nn::ConfusionMatrix{.classes = 3, .ignore_class = -1});
  with_both<OfElements>(nn::Reduced{loss, nn::Reduction::Sum{}}, use);
}

TEST_CASE("compiled steps weigh one-hot rows by class as on the host") {
  Tensor<std::int32_t> one_hot{Shape{examples, 3}};
  for (std::size_t row = 0; row < examples; ++row) one_hot[row * 3 + row % 3] = 1;
  const auto use = [&](auto& model, auto& compiled) {
    const auto train = [&](auto& each) {
      return each.train_on_batch(inputs(), one_hot, {.class_weight = {1, 0.5F, 2}});
    };
    check_same(train(compiled), train(model));
    one_hot[3] = 1;  // row 1 has two classes
    CHECK(std::isnan(compiled.train_on_batch(inputs(), one_hot, {.class_weight = {1, 0.5F, 2}})["loss"]));
  };
  with_both<Net>(nn::CategoricalCrossentropy{}, use);
}

TEST_CASE("count_labels of all replicas divides a loss in a compiled step, as on the host") {
  dist::PerReplica<Tensor<std::int32_t>> labels{2};
  dist::PerReplica<Tensor<float>> logits{2};
  labels[0] = Tensor<std::int32_t>{Shape{2, 2}, {0, -1, 1, -1}};
  labels[1] = Tensor<std::int32_t>{Shape{1, 2}, {-1, 2}};
  for (std::size_t replica = 0; replica < 2; ++replica) {
    logits[replica] = Tensor<float>{Shape{2 - replica, 2, 3}};
    for (std::size_t i = 0; i < logits[replica].size(); ++i) logits[replica][i] = static_cast<float>(i * 7 % 5);
  }
  const nn::SparseCategoricalCrossentropy loss{.ignore_class = -1};
  OnXla strategy{2};
  auto step = strategy.compile([&](auto& replica, const auto& targets, const auto& outputs) {
    const auto count = nn::count_labels(replica, targets, -1);
    const auto all = nn::count_labels(replica, targets);
    const auto traced = outputs.template as<dist::hlo::batch, 2, 3>();
    return std::tuple{count, all, nn::compute_loss(loss, replica, traced, targets, count)};
  });
  const auto [count, all, value] = step(labels, logits);
  CHECK(count[0].value() == 3);
  CHECK(all[1].value() == 6);
  double total = 0;
  for (std::size_t replica = 0; replica < 2; ++replica)
    total += nn::total_loss(loss, nn::values_of(logits[replica]), nn::values_of(labels[replica]));
  CHECK(strategy.reduce(dist::sum, value) == doctest::Approx(total / 3));
}
