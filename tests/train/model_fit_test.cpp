// Tests of the options of fit, against plain loops.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <dist/data/batch.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/dist.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/train/model.hpp>

#include "keras_fixtures.hpp"
#include "linear.hpp"
#include "random_fits.hpp"
#include "support/saved.hpp"
#include "support/what_throws.hpp"

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

constexpr float rate = 0.125f;  // exact in binary
const nn::SGD descent{.learning_rate = rate};

struct Arrays {
  explicit Arrays(std::size_t rows) : x{{rows, 2}}, y{{rows, 1}} {
    const Points points{rows, rows};
    for (std::size_t row = 0; row < rows; ++row) {
      x[2 * row] = points.x(row, 0);
      x[2 * row + 1] = points.x(row, 1);
      y[row] = points.y(row);
    }
  }
  dist::Tensor<double> x, y;
};

template <class S>
std::vector<double> weights_of(S& strategy, Linear<S>& net) {
  const auto& read = net.parameters().read(strategy.scope());
  return {read[0], read[1], read[2]};
}
void check_weights(const std::vector<double>& weights, const PlainLinear& plain) {
  for (std::size_t i = 0; i < 3; ++i) CHECK(weights[i] == doctest::Approx(plain.weights[i]).epsilon(1e-12));
}

/// Runs one step of gradient descent on rows [first, last) with weights `weight(row)` in the loss.
void step_plain(PlainLinear& plain, const Points& points, std::size_t first, std::size_t last, const auto& weight) {
  double slopes[3] = {};
  for (std::size_t row = first; row < last; ++row) {
    const double slope = 2 * plain.error(points, row) * weight(row) / static_cast<double>(last - first);
    slopes[0] += slope * points.x(row, 0);
    slopes[1] += slope * points.x(row, 1);
    slopes[2] += slope;
  }
  for (std::size_t i = 0; i < 3; ++i) plain.weights[i] -= double{rate} * slopes[i];
}

struct Heard {
  std::string record;
  void on_train_begin() { record += "["; }
  void on_epoch_begin(const nn::Epoch& epoch) { record += "e" + std::to_string(epoch.index) + " "; }
  void on_train_batch_begin(std::size_t step) { record += "b" + std::to_string(step); }
  void on_train_batch_end(std::size_t step, nn::CurrentLogs) { record += "-" + std::to_string(step) + " "; }
  void on_test_begin(std::optional<std::size_t> steps) { record += "t" + std::to_string(steps.value_or(99)) + " "; }
  void on_train_end(const nn::Logs& logs) { record += logs.size() > 0 ? "]" : "no logs"; }
};

/// All hooks, with the names of keras_fixtures.py.
struct Recorder {
  std::string record;
  void note(const std::string& call) { record += (record.empty() ? "" : " ") + call; }
  void note(const char* call, std::size_t number) { note(call + std::to_string(number)); }
  void on_train_begin() { note("train_begin"); }
  void on_epoch_begin(const nn::Epoch& epoch) { note("epoch_begin", epoch.index); }
  void on_train_batch_begin(std::size_t step) { note("train_batch_begin", step); }
  void on_train_batch_end(std::size_t step, nn::CurrentLogs) { note("train_batch_end", step); }
  void on_epoch_end(const nn::Epoch& epoch, const nn::Logs&) { note("epoch_end", epoch.index); }
  void on_train_end(const nn::Logs&) { note("train_end"); }
  void on_test_begin(std::optional<std::size_t>) { note("test_begin"); }
  void on_test_batch_begin(std::size_t step) { note("test_batch_begin", step); }
  void on_test_batch_end(std::size_t step, nn::CurrentLogs) { note("test_batch_end", step); }
  void on_test_end(std::size_t, const nn::Logs&) { note("test_end"); }
  void on_predict_begin(std::optional<std::size_t>) { note("predict_begin"); }
  void on_predict_batch_begin(std::size_t step) { note("predict_batch_begin", step); }
  void on_predict_batch_end(std::size_t step) { note("predict_batch_end", step); }
  void on_predict_end(std::size_t) { note("predict_end"); }
};

struct StopsAfter {
  std::size_t epoch, step;
  void on_epoch_begin(const nn::Epoch& begun) { now = begun.index; }
  void on_train_batch_end(auto& model, std::size_t done, nn::CurrentLogs) {
    if (now == epoch && done == step) model.stop_training();
  }
  std::size_t now = 0;
};

struct BeginsAt {
  std::size_t epoch, step;
  void on_train_begin(auto& model) { model.begin_at(epoch, step); }
};

}  // namespace

TEST_CASE("fit matches plain loops, however few rows a replica has (spec P05, P06)") {
  dist::Default none;
  random_fits::check_fits(none);
  for (const std::size_t replicas : {2U, 3U, 4U}) {
    Mirrored mirrored{replicas};
    random_fits::check_fits(mirrored);
  }
  dist::CentralStorage<dist::Cpu> central{3};
  random_fits::check_fits(central);
}

namespace {

/// Evaluates after the first batch.
struct Evaluates {
  const Points& on;
  double loss = 0;
  void on_train_batch_end(auto& model, std::size_t step, nn::CurrentLogs) {
    if (step == 0) loss = model.evaluate(on, {.verbose = 0})["loss"];
  }
};
struct Fits {
  const Points& on;
  void on_epoch_end(auto& model, const nn::Epoch&, const nn::Logs&) { model.fit(on, {.verbose = 0}); }
};
struct TrainsOnBatch {
  const Arrays& on;
  void on_train_batch_end(auto& model, std::size_t, nn::CurrentLogs) { model.train_on_batch(on.x, on.y); }
};
struct StopsAtOnce {
  void on_epoch_begin(auto& model, const nn::Epoch&) { model.stop_training(); }
};

/// Points for a single pass.
class Once : public Points {
 public:
  using Points::Points;
  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const {
    static const Points none{0, 1};
    return epoch == 0 ? Points::iterate(0) : none.iterate(0);
  }
};

}  // namespace

TEST_CASE("the metrics of an epoch exclude examples that a callback evaluates") {
  const Points points{8, 4}, others{6, 6};
  Mirrored strategy{2};
  Linear<Mirrored> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}, nn::MeanOf{nn::MeanSquaredError{}}};
  PlainLinear plain;
  const double expected = plain.train(points, double{rate});
  Evaluates evaluates{others};
  const nn::History history = model.fit(points, {.verbose = 0}, evaluates);
  CHECK(history["loss"][0] == doctest::Approx(expected));
  CHECK(history["mean_squared_error"][0] == doctest::Approx(expected));
  PlainLinear first;
  step_plain(first, points, 0, 4, [](std::size_t) { return 1.0; });
  CHECK(evaluates.loss == doctest::Approx(first.mean_squared_error(others)));

  CHECK_THROWS_WITH_AS(
      model.fit(points, {.verbose = 0}, Fits{others}),
      "fit was called in a callback of a fit or an evaluation of the same model (the metrics would count the "
      "examples of both). Call it afterwards. A callback of a fit may call evaluate and predict.",
      dist::InvalidArgument);
  const Arrays arrays{4};
  CHECK_THROWS_AS(model.fit(points, {.verbose = 0}, TrainsOnBatch{arrays}), dist::InvalidArgument);
  CHECK(model.fit(points, {.verbose = 0}).epochs().size() == 1);  // the model is free again
}

TEST_CASE("an epoch without batches does not count, and is the last one") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  Heard heard;
  const nn::History history = model.fit(Once{4, 2}, {.epochs = 3, .verbose = 0}, heard);
  CHECK(history["loss"].size() == 1);
  CHECK(heard.record == "[e0 b0-0 b1-1 e1 ]");
  CHECK(model.fit(Points{4, 2}, {.epochs = 3, .verbose = 0}, StopsAtOnce{}).epochs().empty());
}

TEST_CASE("epochs with fewer steps continue in the dataset after the previous epoch (spec Q06, Q07)") {
  const Points points{12, 2};  // six batches
  Mirrored strategy{2};
  Linear<Mirrored> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  Heard heard;
  const nn::History history = model.fit(points, {.epochs = 2, .steps_per_epoch = 3, .verbose = 0}, heard);
  CHECK(heard.record == "[e0 b0-0 b1-1 b2-2 e1 b0-0 b1-1 b2-2 ]");
  PlainLinear plain;
  plain.train(points, double{rate});  // one pass over all
  check_weights(weights_of(strategy, net), plain);
  CHECK(history.epochs().size() == 2);
}

TEST_CASE("training ends with the data, in the same epoch (spec Q05)") {
  const Points points{10, 2};  // five batches
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  Heard heard;
  CHECK(model.fit(points, {.epochs = 4, .steps_per_epoch = 3, .verbose = 0}, heard).epochs().size() == 2);
  CHECK(heard.record == "[e0 b0-0 b1-1 b2-2 e1 b0-0 b1-1 ]");
  // If they end with an epoch, that is the last one.
  CHECK(model.fit(Points{12, 2}, {.epochs = 4, .steps_per_epoch = 3, .verbose = 0}).epochs().size() == 2);
}

TEST_CASE("an infinite dataset has epochs of the given number of steps (spec Q04)") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  const Arrays arrays{6};
  const auto endless = dist::data::tensor_slices(arrays.x, arrays.y) | dist::data::repeat() | dist::data::batch(4);
  CHECK_THROWS_AS(model.fit(endless, {.verbose = 0}), dist::InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(model.evaluate(endless, {.verbose = 0})), dist::InvalidArgument);
  Heard heard;
  model.fit(endless, {.epochs = 2, .steps_per_epoch = 2, .validation = endless, .validation_steps = 1, .verbose = 0},
            heard);
  CHECK(heard.record == "[e0 b0-0 b1-1 t1 e1 b0-0 b1-1 t1 ]");
  PlainLinear plain;  // all 6 rows, in turn
  const Points cycled{6, 6};
  for (std::size_t batch = 0; batch < 4; ++batch) {
    double slopes[3] = {};
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t row = (4 * batch + i) % 6;
      const double slope = 2 * plain.error(cycled, row) / 4;
      slopes[0] += slope * cycled.x(row, 0);
      slopes[1] += slope * cycled.x(row, 1);
      slopes[2] += slope;
    }
    for (std::size_t i = 0; i < 3; ++i) plain.weights[i] -= double{rate} * slopes[i];
  }
  check_weights(weights_of(strategy, net), plain);
  CHECK(model.evaluate(endless, {.verbose = 0, .steps = 3}).size() == 1);
}

TEST_CASE("callbacks see groups of steps, the last one shorter (spec Q08)") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  Heard heard;
  model.fit(Points{10, 2}, {.steps_per_execution = 2, .verbose = 0}, heard);
  CHECK(heard.record == "[e0 b0-1 b2-3 b4-4 ]");
  const Points unknown{4, 2, [](std::size_t) { return dist::data::Cardinality::unknown(); }};
  CHECK_THROWS_WITH_AS(model.fit(unknown, {.steps_per_execution = 2, .verbose = 0}),
                       "fit cannot determine where the groups of steps_per_execution end (the number of batches of the "
                       "dataset is unknown). Give fit steps_per_epoch, too.",
                       dist::InvalidArgument);
  model.fit(unknown, {.steps_per_epoch = 2, .steps_per_execution = 2, .verbose = 0});
}

TEST_CASE("validation runs every validation_freq epochs, and initial_epoch sets the first epoch (spec Q14)") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  Heard heard;
  const nn::History history = model.fit(
      Points{4, 4}, {.epochs = 5, .initial_epoch = 1, .validation = Points{6, 2}, .validation_freq = 2, .verbose = 0},
      heard);
  CHECK(heard.record == "[e1 b0-0 t3 e2 b0-0 e3 b0-0 t3 e4 b0-0 ]");
  CHECK(history.epochs().size() == 4);
  CHECK(history["val_loss"].size() == 2);
  CHECK(history["loss"].size() == 4);
}

TEST_CASE("sample weights and class weights apply to the loss and its gradient") {
  const std::size_t rows = 8;
  const Points points{rows, 4};
  Arrays arrays{rows};
  dist::Tensor<float> weight{{rows}};
  for (std::size_t row = 0; row < rows; ++row) weight[row] = row % 3 == 0 ? 2.0F : 0.5F;
  const auto weight_of = [&](std::size_t row) { return double{weight[row]}; };
  for (const std::size_t replicas : {1U, 2U, 4U}) {
    CAPTURE(replicas);
    Mirrored strategy{replicas};
    Linear<Mirrored> net{strategy};
    nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
    const nn::History history =
        model.fit(arrays.x, arrays.y, weight, {.epochs = 2, .verbose = 0, .batch_size = 4, .shuffle = false});
    PlainLinear plain;
    for (int epoch = 0; epoch < 2; ++epoch) {
      double total = 0;
      for (const std::size_t first : {0U, 4U}) {
        for (std::size_t row = first; row < first + 4; ++row)
          total += weight_of(row) * plain.error(points, row) * plain.error(points, row);
        step_plain(plain, points, first, first + 4, weight_of);
      }
      CHECK(history["loss"][static_cast<std::size_t>(epoch)] == doctest::Approx(total / rows));
    }
    check_weights(weights_of(strategy, net), plain);
  }

  // A class weight is a sample weight by label.
  using Net = nn::Sequential<nn::Input<2>, nn::Dense<3>>;
  dist::Tensor<float> x{{rows, 2}};
  dist::Tensor<std::int32_t> labels{{rows}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) - 2;
  for (std::size_t i = 0; i < rows; ++i) labels[i] = static_cast<std::int32_t>(i % 3);
  dist::Tensor<float> by_label{{rows}};
  const std::vector<float> class_weight{2, 0.5F, 1};
  for (std::size_t i = 0; i < rows; ++i) by_label[i] = class_weight[i % 3] * weight[i];
  const auto fitted = [&](const dist::Tensor<float>& sample_weight, const std::vector<float>& classes) {
    Mirrored strategy{2};
    nn::Network<Net> net{strategy, 5};
    nn::Model model{strategy, net, descent, nn::SparseCategoricalCrossentropy{}};
    model.fit(x, labels, sample_weight, {.class_weight = classes, .verbose = 0, .batch_size = 4, .shuffle = false});
    return support::Saved{strategy, net};
  };
  CHECK(fitted(weight, class_weight) == fitted(by_label, {}));
  CHECK_FALSE(fitted(weight, class_weight) == fitted(weight, {}));
  CHECK_THROWS_AS(fitted(weight, {1, 1}), dist::ReplicaError);  // label 2 has no weight
}

TEST_CASE("only weighted metrics use weights, in all calls and like in Keras") {
  constexpr std::size_t rows = 12;
  using Net = nn::Sequential<nn::Input<2>, nn::Dense<3>>;
  dist::Tensor<float> x{{rows, 2}};
  dist::Tensor<std::int32_t> y{{rows}};
  dist::Tensor<float> weight{{rows}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (static_cast<float>((i * 37 + 11) % 64) - 32) / 16;
  for (std::size_t row = 0; row < rows; ++row) {
    y[row] = static_cast<std::int32_t>(row * 5 % 7 % 3);
    weight[row] = static_cast<float>(row % 4 + 1) / 2;
  }
  Mirrored strategy{2};
  nn::Network<Net> net{strategy};
  nn::Model model{strategy,
                  net,
                  descent,
                  nn::SparseCategoricalCrossentropy{},
                  nn::Weighted{nn::SparseCategoricalAccuracy{}},
                  nn::Weighted{nn::MeanOf{nn::SparseCategoricalCrossentropy{}}},
                  nn::SparseCategoricalAccuracy{}};
  const auto begin = [&] {
    dist::walk(net, [&](std::string_view name, auto& leaf) {
      auto values = leaf.whole(strategy.scope());
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = name == "dense/kernel" ? (static_cast<float>(i * 5 % 8) - 4) / 8 : 0;
      leaf.restore(strategy.scope(), values.view());
    });
  };
  const auto check = [](const auto& value_of, std::size_t size, const auto& expected) {
    CHECK(size == std::size(expected));
    for (const std::pair<std::string_view, double>& each : expected) {
      CAPTURE(each.first);
      CHECK(value_of(each.first) == doctest::Approx(each.second).epsilon(1e-6));
    }
  };
  const auto check_logs = [&](const nn::Logs& logs, const auto& expected) {
    check([&](std::string_view name) { return logs[name]; }, logs.size(), expected);
  };

  begin();
  const auto weighted = dist::data::TensorSlices{std::tuple{x, y, weight}} | dist::data::batch(4);
  const nn::History history = model.fit(x, y,
                                        {.epochs = 2,
                                         .validation = weighted,
                                         .class_weight = {2, 0.5F, 1},
                                         .verbose = 0,
                                         .batch_size = 4,
                                         .shuffle = false});
  check([&](std::string_view name) { return history[name].back(); }, history.series().size(), keras::fitted);
  begin();
  check_logs(model.evaluate(x, y, weight, {.verbose = 0, .batch_size = 4}), keras::evaluated);
  check_logs(model.evaluate(weighted, {.verbose = 0}), keras::evaluated);
  check_logs(model.test_on_batch(x, y, weight), keras::tested_on_batch);
  check_logs(model.train_on_batch(x, y, weight), keras::trained_on_batch);
  begin();
  check_logs(model.train_on_batch(x, y, {.class_weight = {2, 0.5F, 1}}), keras::trained_by_class);
  begin();
  const nn::Logs unweighted = model.train_on_batch(x, y);  // without the class weights of the previous batch
  CHECK(unweighted["weighted_accuracy"] == unweighted["accuracy"]);
  std::string names;
  for (const nn::Logs::Entry& entry : unweighted) names += entry.name + " ";
  CHECK(names == "loss accuracy weighted_accuracy sparse_categorical_crossentropy ");
}

TEST_CASE("hooks are called when Keras calls them, and not by the functions for batches") {
  const Arrays arrays{12};
  const Points points{12, 4};
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  const auto heard = [](const auto& call) {
    Recorder recorder;
    call(recorder);
    return recorder.record;
  };
  CHECK(heard([&](auto& recorder) {
          model.fit(points, {.epochs = 2, .validation = Points{4, 4}, .verbose = 0}, recorder);
        }) == keras::fit_with_validation);
  CHECK(heard([&](auto& recorder) {
          StopsAfter stop{0, 1};
          model.fit(points, {.epochs = 2, .verbose = 0}, stop, recorder);
        }) == keras::fit_that_stops);
  CHECK(heard([&](auto& recorder) { model.evaluate(points, {.verbose = 0}, recorder); }) == keras::evaluate);
  CHECK(heard([&](auto& recorder) { static_cast<void>(model.predict(points, {.verbose = 0}, recorder)); }) ==
        keras::predict);
  const auto predicted = model.predict_on_batch(arrays.x);
  REQUIRE(predicted.shape() == dist::Shape{12, 1});
  const auto w = weights_of(strategy, net);
  for (std::size_t row = 0; row < 12; ++row)
    CHECK(predicted[row] == w[0] * arrays.x[2 * row] + w[1] * arrays.x[2 * row + 1] + w[2]);
}

TEST_CASE("arrays are batched, shuffled and split for validation (spec Q03)") {
  const std::size_t rows = 40;
  const Arrays arrays{rows};
  const auto fitted = [&](auto options_of) {
    Mirrored strategy{2};
    Linear<Mirrored> net{strategy};
    nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
    Heard heard;
    nn::FitOptions<decltype(model)> options{.epochs = 2, .verbose = 0};
    options_of(options);
    model.fit(arrays.x, arrays.y, std::move(options), heard);
    return std::pair{heard.record, weights_of(strategy, net)};
  };
  // 32 is Keras' default batch size.
  CHECK(fitted([](auto&) {}).first == "[e0 b0-0 b1-1 e1 b0-0 b1-1 ]");
  const auto plain_order = fitted([](auto& options) { options.batch_size = 10, options.shuffle = false; });
  PlainLinear plain;
  const Points points{rows, 10};
  plain.train(points, double{rate});
  plain.train(points, double{rate});
  check_weights(plain_order.second, plain);
  const auto shuffled = fitted([](auto& options) { options.batch_size = 10; });
  CHECK(shuffled.second != plain_order.second);
  CHECK(shuffled.second == fitted([](auto& options) { options.batch_size = 10; }).second);
  CHECK(shuffled.second != fitted([](auto& options) { options.batch_size = 10, options.shuffle_seed = 1; }).second);

  // The last quarter is not used for training.
  const auto split =
      fitted([](auto& options) { options.batch_size = 10, options.shuffle = false, options.validation_split = 0.25; });
  CHECK(split.first == "[e0 b0-0 b1-1 b2-2 t1 e1 b0-0 b1-1 b2-2 t1 ]");
  PlainLinear first_part;
  first_part.train(Points{30, 10}, double{rate});
  first_part.train(Points{30, 10}, double{rate});
  check_weights(split.second, first_part);
}

TEST_CASE("a callback can stop a fit, also in the middle of an epoch") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  Heard heard;
  StopsAfter stop{1, 0};
  CHECK(model.fit(Points{4, 2}, {.epochs = 9, .verbose = 0}, stop, heard).epochs().size() == 2);
  CHECK(heard.record == "[e0 b0-0 b1-1 e1 b0-0 ]");
  // The next fit trains again.
  CHECK(model.fit(Points{4, 2}, {.epochs = 2, .verbose = 0}).epochs().size() == 2);
}

TEST_CASE("a fit may start inside an epoch, with its remaining batches") {
  const Points points{12, 2};
  for (const bool one_pass : {false, true}) {
    CAPTURE(one_pass);
    dist::Default strategy;
    Linear<dist::Default> net{strategy};
    nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
    Heard heard;
    BeginsAt begin{1, 2};
    nn::FitOptions<decltype(model)> options{.epochs = 2, .verbose = 0};
    if (one_pass) options.steps_per_epoch = 3;
    model.fit(points, std::move(options), begin, heard);
    CHECK(heard.record == (one_pass ? "[e1 b2-2 ]" : "[e1 b2-2 b3-3 b4-4 b5-5 ]"));
    PlainLinear plain;
    const auto one = [](std::size_t) { return 1.0; };
    for (std::size_t batch = one_pass ? 5 : 2; batch < 6; ++batch)
      step_plain(plain, points, 2 * batch, 2 * batch + 2, one);
    check_weights(weights_of(strategy, net), plain);
  }
}

TEST_CASE("one batch is trained and tested separately (spec Q15)") {
  const std::size_t rows = 5;
  const Arrays arrays{rows};
  const Points points{rows, rows};
  Mirrored strategy{2};
  Linear<Mirrored> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  PlainLinear plain;
  for (int step = 0; step < 3; ++step) {
    CHECK(model.test_on_batch(arrays.x, arrays.y)["loss"] == doctest::Approx(plain.mean_squared_error(points)));
    CHECK(model.train_on_batch(arrays.x, arrays.y)["loss"] == doctest::Approx(plain.train(points, double{rate})));
  }
  check_weights(weights_of(strategy, net), plain);
  CHECK(model.optimizer().iterations(strategy.scope()) == 3);
}

TEST_CASE("an error shows the shapes of a replica that has rows") {
  Mirrored strategy{4};
  Linear<Mirrored> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  const dist::Tensor<double> x{{1, 2}}, y{{1, 5}};
  for (int round = 0; round < 20; ++round)
    CHECK(support::what_throws<dist::ReplicaError>([&] {
            model.fit(x, y, {.verbose = 0});
          }).find("outputs [1, 1], targets [1, 5]") != std::string::npos);
}

TEST_CASE("empty and contradictory options are rejected") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  const Points points{4, 2};
  const Arrays arrays{4};
  CHECK_THROWS_AS(model.fit(points, {.steps_per_epoch = 0}), dist::InvalidArgument);
  CHECK_THROWS_AS(model.fit(points, {.steps_per_execution = 0}), dist::InvalidArgument);
  CHECK_THROWS_AS(model.fit(points, {.validation_freq = 0}), dist::InvalidArgument);
  CHECK_THROWS_AS(model.fit(points, {.batch_size = 2}), dist::InvalidArgument);
  CHECK_THROWS_AS(model.fit(points, {.shuffle = true}), dist::InvalidArgument);
  CHECK_THROWS_AS(model.fit(points, {.validation_split = 0.5}), dist::InvalidArgument);
  CHECK_THROWS_AS(model.fit(arrays.x, arrays.y, {.validation_split = 1}), dist::InvalidArgument);
  CHECK_THROWS_AS(model.fit(arrays.x, arrays.y, {.validation = points, .validation_split = 0.5}),
                  dist::InvalidArgument);
  CHECK_THROWS_AS(model.fit(arrays.x, arrays.y, {.class_weight = {1, 1}, .verbose = 0}), dist::InvalidArgument);
}

TEST_CASE("predictions are in the order of the examples, under every strategy (spec Q12)") {
  const std::size_t rows = 11;
  const Arrays arrays{rows};
  const auto check = [&](auto& strategy) {
    CAPTURE(strategy.describe());
    Linear<std::remove_reference_t<decltype(strategy)>> net{strategy};
    nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
    model.fit(arrays.x, arrays.y, {.epochs = 3, .verbose = 0, .batch_size = 4});
    const auto w = weights_of(strategy, net);
    const auto right = [&](const dist::Tensor<double>& predicted, std::size_t count) {
      REQUIRE(predicted.shape() == dist::Shape{count, 1});
      for (std::size_t row = 0; row < count; ++row)
        CHECK(predicted[row] == w[0] * arrays.x[2 * row] + w[1] * arrays.x[2 * row + 1] + w[2]);
    };
    right(model.predict(arrays.x, {.verbose = 0}), rows);
    right(model.predict(arrays.x, {.verbose = 0, .batch_size = 3}), rows);
    right(model.predict(arrays.x, {.verbose = 0, .steps = 2, .batch_size = 3}), 6);
    // The features of examples are used.
    right(model.predict(dist::data::tensor_slices(arrays.x, arrays.y) | dist::data::batch(4), {.verbose = 0}), rows);
  };
  dist::Default none;
  check(none);
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    Mirrored mirrored{replicas};
    check(mirrored);
  }
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  struct Heard {
    std::string record;
    void on_predict_begin(std::optional<std::size_t> steps) {
      record += "p" + std::to_string(steps.value_or(99)) + " ";
    }
    void on_predict_batch_begin(std::size_t step) { record += "b" + std::to_string(step); }
    void on_predict_batch_end(std::size_t step) { record += "-" + std::to_string(step) + " "; }
    void on_predict_end(std::size_t steps) { record += "of" + std::to_string(steps); }
  } heard;
  static_cast<void>(model.predict(arrays.x, {.verbose = 0, .batch_size = 6}, heard));
  CHECK(heard.record == "p2 b0-0 b1-1 of2");
}

TEST_CASE("a fit with ignored labels of elements divides by the labels that count on all replicas (spec P05)") {
  using Net = nn::Sequential<nn::Input<3, 2>, nn::Dense<4>>;
  constexpr std::size_t rows = 6;
  dist::Tensor<float> x{{rows, 3, 2}};
  dist::Tensor<std::int32_t> labels{{rows, 3}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 5 % 7) / 4 - 1;
  // Some rows count whole, and some not at all, so that the replicas have different numbers of labels.
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = i / 3 == 1 || i % 4 == 3 ? -1 : static_cast<std::int32_t>(i * 3 % 4);
  const nn::SparseCategoricalCrossentropy loss{.ignore_class = -1};
  const auto fitted = [&](std::size_t replicas) {
    Mirrored strategy{replicas};
    nn::Network<Net> net{strategy, 5};
    nn::Model model{strategy, net, descent, loss, nn::SparseCategoricalAccuracy{.ignore_class = -1}};
    const nn::History history = model.fit(x, labels, {.epochs = 3, .verbose = 0, .batch_size = 4, .shuffle = false});
    std::vector<double> numbers{history["loss"].begin(), history["loss"].end()};
    numbers.insert(numbers.end(), history["accuracy"].begin(), history["accuracy"].end());

    const dist::Tensor<float> outputs = model.predict(x, {.verbose = 0});
    const nn::Logs logs = model.evaluate(x, labels, {.verbose = 0, .batch_size = 4});
    double total = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < 0) continue;
      double sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += std::exp(static_cast<double>(outputs[i * 4 + k]));
      total += std::log(sum) - static_cast<double>(outputs[i * 4 + static_cast<std::size_t>(labels[i])]);
      ++count;
    }
    CHECK(logs["loss"] == doctest::Approx(total / static_cast<double>(count)).epsilon(1e-5));
    return numbers;
  };
  const auto alone = fitted(1);
  CHECK(alone[2] < alone[0]);
  for (const std::size_t replicas : {std::size_t{2}, std::size_t{3}}) {
    const auto together = fitted(replicas);
    REQUIRE(together.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(together[i] == doctest::Approx(alone[i]).epsilon(1e-5));
  }
}
