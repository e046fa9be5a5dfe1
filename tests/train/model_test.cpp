#include <dist/train/model.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <dist/data/batch.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/dist.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/sequential.hpp>

#include "linear.hpp"
#include "support/allocations.hpp"
#include "support/saved.hpp"
#include "terminal.hpp"

namespace nn = dist::nn;
using dist::data::Cardinality;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

constexpr float rate = 0.125f;  // exact in binary
const nn::SGD descent{.learning_rate = rate};

std::string joined(const Terminal& kept) {
  std::string all;
  for (const std::string& message : *kept.messages) all += message;
  return all;
}

/// Trains on 10 points in batches of 4, the last one short, and compares with plain loops.
template <class S>
void compare(S& strategy) {
  CAPTURE(strategy.describe());
  Linear<S> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}, nn::MeanOf{nn::MeanSquaredError{}}};
  const Points points{10, 4};
  const Points unseen{7, 3};
  const nn::History history = model.fit(points, {.epochs = 5, .validation = unseen, .verbose = 0});

  PlainLinear plain;
  std::string names;
  for (const auto& series : history.series()) names += series.name + " ";
  CHECK(names == "loss mean_squared_error val_loss val_mean_squared_error ");
  REQUIRE(history.epochs().size() == 5);
  for (std::size_t epoch = 0; epoch < 5; ++epoch) {
    CHECK(history["loss"][epoch] == doctest::Approx(plain.train(points, double{rate})));
    CHECK(history["mean_squared_error"][epoch] == doctest::Approx(history["loss"][epoch]));
    CHECK(history["val_loss"][epoch] == doctest::Approx(plain.mean_squared_error(unseen)));
    CHECK(history["val_mean_squared_error"][epoch] == doctest::Approx(history["val_loss"][epoch]));
  }
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(net.parameters().read(strategy.scope())[i] == doctest::Approx(plain.weights[i]).epsilon(1e-10));
  CHECK(model.optimizer().iterations(strategy.scope()) == 15);

  const nn::Logs logs = model.evaluate(points, {.verbose = 0});
  CHECK(logs["loss"] == doctest::Approx(plain.mean_squared_error(points)));
}

}  // namespace

TEST_CASE("fit and evaluate match plain loops under every strategy (spec P05, P06, Q14, Q18)") {
  dist::Default none;
  compare(none);
  dist::OneDevice<dist::Cpu> one;
  compare(one);
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    Mirrored mirrored{replicas};
    compare(mirrored);
  }
  dist::Mirrored<dist::ReductionToOneDevice> central{2};
  compare(central);
}

TEST_CASE("equal global batches train the same on any number of replicas that divides them (spec P24)") {
  const Points points{32, 8};
  dist::Default none;
  Linear<dist::Default> alone{none};
  nn::Model reference{none, alone, descent, nn::MeanSquaredError{}};
  const nn::History expected = reference.fit(points, {.epochs = 5, .verbose = 0});
  for (const std::size_t replicas : {2U, 4U}) {
    Mirrored strategy{replicas};
    Linear<Mirrored> net{strategy};
    nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
    const nn::History history = model.fit(points, {.epochs = 5, .verbose = 0});
    for (std::size_t epoch = 0; epoch < 5; ++epoch)
      CHECK(history["loss"][epoch] == doctest::Approx(expected["loss"][epoch]).epsilon(1e-12));
  }
}

TEST_CASE("fit and evaluate print progress (spec Q.1)") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, nn::SGD{.learning_rate = 0}, nn::MeanSquaredError{}};
  const Points points{4, 2};
  const double loss = PlainLinear{}.mean_squared_error(points);
  char shown[32];
  std::snprintf(shown, sizeof shown, "%.4f", loss);
  const std::string bar = "2/2 [==============================] - 0s 0s/step - loss: " + std::string(shown);

  const Terminal fitted;
  model.fit(points, {.epochs = 2, .validation = points, .console = fitted.console(false)});
  CHECK(joined(fitted) ==
        "Epoch 1/2\n" + bar + " - val_loss: " + shown + "\nEpoch 2/2\n" + bar + " - val_loss: " + shown + "\n");

  const Terminal lines;
  model.fit(points, {.verbose = 2, .console = lines.console(false)});
  CHECK(joined(lines) == "2/2 - 0s - loss: " + std::string(shown) + " - 0s/epoch - 0s/step\n");

  const Terminal evaluated;
  model.evaluate(points, {.console = evaluated.console(false)});
  CHECK(joined(evaluated) == bar + "\n");
}

TEST_CASE("the first epoch determines the number of steps (spec Q05)") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  const Points points{4, 2, [](std::size_t) { return Cardinality::unknown(); }};
  const Terminal kept;
  model.fit(points, {.epochs = 2, .console = kept.console()});
  REQUIRE(kept.messages->size() == 6);
  CHECK((*kept.messages)[1].find("1/Unknown") != std::string::npos);
  CHECK((*kept.messages)[2].find("\r2/2 [=") != std::string::npos);
  CHECK((*kept.messages)[4].find("\r1/2 [=") != std::string::npos);
}

TEST_CASE("callbacks receive epochs, batches and tests, in fit and in evaluate") {
  struct Watch {
    std::string record;
    void on_epoch_begin(const nn::Epoch& epoch) { record += "epoch" + std::to_string(epoch.index) + " "; }
    void on_train_batch_end(std::size_t step, nn::CurrentLogs logs) {
      record += std::to_string(step) + (logs()["loss"] > 0 ? "+ " : "- ");
    }
    void on_epoch_end(const nn::Epoch& epoch, const nn::Logs&) { record += "of" + std::to_string(*epoch.steps) + " "; }
    void on_test_begin(std::optional<std::size_t>) { record += "tests "; }
    void on_test_batch_end(std::size_t step, nn::CurrentLogs) { record += "test" + std::to_string(step) + " "; }
    void on_test_end(std::size_t steps, const nn::Logs& logs) {
      record += "tested" + std::to_string(steps) + (logs["loss"] > 0 ? "+ " : "- ");
    }
  };
  Mirrored strategy{2};
  Linear<Mirrored> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  Watch watch;
  model.fit(Points{6, 3}, {.epochs = 2, .verbose = 0}, watch);
  CHECK(watch.record == "epoch0 0+ 1+ of2 epoch1 0+ 1+ of2 ");
  watch.record.clear();
  model.evaluate(Points{6, 3}, {.verbose = 0}, watch);
  CHECK(watch.record == "tests test0 test1 tested2+ ");
  // As in Keras, the validation is a test between the last batch of an epoch and its end.
  watch.record.clear();
  model.fit(Points{6, 3}, {.epochs = 2, .validation = Points{3, 3}, .verbose = 0}, watch);
  CHECK(watch.record == "epoch0 0+ 1+ tests test0 tested1+ of2 epoch1 0+ 1+ tests test0 tested1+ of2 ");
}

TEST_CASE("a network learns to separate two classes, deterministically") {
  const auto train = [] {
    Mirrored strategy{2};
    using Net = nn::Sequential<nn::Input<2>, nn::Dense<8, nn::Relu>, nn::Dense<2>>;
    nn::Network<Net> net{strategy, 1};
    nn::Model model{strategy, net, nn::Adam{.learning_rate = 0.05f}, nn::SparseCategoricalCrossentropy{},
                    nn::SparseCategoricalAccuracy{}};
    dist::Tensor<float> x{dist::Shape{64, 2}};
    dist::Tensor<std::int32_t> y{dist::Shape{64}};
    for (std::size_t row = 0; row < 64; ++row) {
      x[2 * row] = std::sin(static_cast<float>(row) * 1.3f);
      x[2 * row + 1] = std::cos(static_cast<float>(row) * 0.7f);
      y[row] = x[2 * row] * x[2 * row + 1] > 0 ? 1 : 0;  // not linear
    }
    const auto points = dist::data::tensor_slices(x, y) | dist::data::batch(16);
    return model.fit(points, {.epochs = 40, .validation = points, .verbose = 0});
  };
  const nn::History once = train();
  const nn::History again = train();
  std::string names;
  for (const auto& series : once.series()) names += series.name + " ";
  CHECK(names == "loss accuracy val_loss val_accuracy ");
  CHECK(once["accuracy"][0] < 0.8);
  CHECK(once["val_accuracy"][39] > 0.95);
  CHECK(once["loss"][39] < once["loss"][0] / 3);
  for (std::size_t epoch = 0; epoch < 40; ++epoch) CHECK(once["loss"][epoch] == again["loss"][epoch]);
}

TEST_CASE("a step of fit does not allocate") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, nn::SGD{.momentum = 0.9f}, nn::MeanSquaredError{}, nn::MeanOf{nn::MeanSquaredError{}}};
  const Terminal kept;
  *kept.now = 0;
  const auto allocated = [&](std::size_t rows) {
    const Points points{rows, 2};
    const std::size_t before = allocations;
    model.fit(points, {.epochs = 1, .console = kept.console(false)});
    return allocations - before;
  };
  allocated(20);
  CHECK(allocated(20) == allocated(80));
}

namespace {

/// Counts the passes of each mode.
struct Recording : Linear<dist::Default> {
  using Linear::Linear;
  template <nn::ForwardMode Mode = nn::Training>
  auto forward(const dist::InReplica auto& replica, dist::TensorView<const double> x, Mode = {}) {
    ++(std::is_same_v<Mode, nn::Training> ? trained : inferred);
    return Linear::forward(replica, x);
  }
  int trained = 0;
  int inferred = 0;
};

}  // namespace

TEST_CASE("fit computes in training mode, evaluate and the validation in inference mode (spec P19)") {
  dist::Default strategy;
  Recording net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  model.fit(Points{6, 2}, {.epochs = 2, .validation = Points{4, 2}, .verbose = 0});
  CHECK(net.trained == 6);
  CHECK(net.inferred == 4);
  model.evaluate(Points{2, 2}, {.verbose = 0});
  CHECK(net.trained == 6);
  CHECK(net.inferred == 5);
}

TEST_CASE("zero epochs give an empty history") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  CHECK(model.fit(Points{4, 2}, {.epochs = 0}).epochs().empty());
}

TEST_CASE("empty and infinite datasets are rejected (spec Q04)") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  CHECK_THROWS_WITH_AS(model.fit(Points{0, 2}, {.verbose = 0}),
                       "The dataset of fit or evaluate has no batch (it ended before the first). Give it at "
                       "least one example, and "
                       "batch before you repeat.",
                       dist::InvalidArgument);
  const Points endless{4, 2, [](std::size_t) { return Cardinality::infinite(); }};
  CHECK_THROWS_AS(model.fit(endless, {.verbose = 0}), dist::InvalidArgument);
  CHECK_THROWS_AS(model.evaluate(endless, {.verbose = 0}), dist::InvalidArgument);
  CHECK_THROWS_AS(model.fit(Points{4, 2}, {.verbose = 3}), dist::InvalidArgument);
}

TEST_CASE("a model belongs to one strategy, and its logs have one value per name (spec Q02)") {
  Mirrored strategy{2};
  Mirrored other{2};
  Linear<Mirrored> net{strategy};
  CHECK_THROWS_AS((nn::Model{other, net, descent, nn::MeanSquaredError{}}), dist::WrongStrategy);
  CHECK_THROWS_WITH_AS(
      (nn::Model{strategy, net, descent, nn::MeanSquaredError{}, nn::MeanOf<nn::MeanSquaredError>{.name = "loss"}}),
      "Two metrics of a model are named 'loss' (the logs would have one value for both). Give one of them "
      "another name: nn::SparseCategoricalAccuracy{.name = \"top\"}.",
      dist::InvalidArgument);
  CHECK_THROWS_AS((nn::Model{strategy, net, nn::SGD{.learning_rate = -1}, nn::MeanSquaredError{}}),
                  dist::InvalidArgument);
}

namespace {

/// Points that record the requested epochs.
class NotedPoints : public dist::data::DatasetRange<NotedPoints> {
 public:
  using Element = Points::Element;
  using Iterator = Points::Iterator;
  [[maybe_unused]] static constexpr bool is_batched = true;

  explicit NotedPoints(std::vector<std::uint64_t>& epochs) : epochs_(&epochs) {}

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const {
    epochs_->push_back(epoch);
    return points_.iterate(epoch);
  }
  [[nodiscard]] Cardinality cardinality() const { return points_.cardinality(); }

 private:
  Points points_{8, 4};
  std::vector<std::uint64_t>* epochs_;
};

}  // namespace

TEST_CASE("a second fit continues the epoch numbers, and so has another shuffle (spec I31)") {
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  std::vector<std::uint64_t> epochs;
  const NotedPoints points{epochs};
  model.fit(points, {.epochs = 2, .verbose = 0});
  model.fit(points, {.epochs = 2, .verbose = 0});
  CHECK(epochs == std::vector<std::uint64_t>{0, 1, 2, 3});
}

namespace {
struct Begins {
  std::size_t epoch;
  void on_train_begin(auto& model) const { model.begin_at(epoch); }
};
}  // namespace

TEST_CASE("if one pass spans several epochs, a fit that starts later continues in the first pass") {
  std::vector<std::uint64_t> epochs;
  const NotedPoints points{epochs};  // two batches
  const auto fitted_from = [&](std::size_t initial, std::size_t begin) {
    epochs.clear();
    dist::Default strategy;
    Linear<dist::Default> net{strategy};
    nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
    Begins begins{begin};
    model.fit(points, {.epochs = 2, .initial_epoch = initial, .steps_per_epoch = 1, .verbose = 0}, begins);
    return model.optimizer().iterations(strategy.scope());
  };
  CHECK(fitted_from(0, 0) == 2);
  CHECK(epochs == std::vector<std::uint64_t>{0});
  CHECK(fitted_from(0, 1) == 1);
  CHECK(epochs == std::vector<std::uint64_t>{0});
  CHECK(fitted_from(1, 0) == 2);
  CHECK(epochs == std::vector<std::uint64_t>{0});
}

TEST_CASE("a model tracks its complete state, and continues elsewhere, bitwise identical") {
  using Net = nn::Sequential<nn::Input<4>, nn::Dense<3>>;
  const auto model_of = [](auto& strategy, auto& net) {
    return nn::Model<std::remove_reference_t<decltype(strategy)>, std::remove_reference_t<decltype(net)>, nn::SGD,
                     nn::SparseCategoricalCrossentropy, nn::SparseCategoricalAccuracy>{
        strategy, net, nn::SGD{.learning_rate = 0.1f, .momentum = 0.5f}, nn::SparseCategoricalCrossentropy{},
        nn::SparseCategoricalAccuracy{}};
  };
  dist::Tensor<float> x{{12, 4}};
  dist::Tensor<std::int32_t> y{{12}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 5) % 7);
  for (std::size_t i = 0; i < 12; ++i) y[i] = static_cast<std::int32_t>(i % 3);
  const auto dataset = dist::data::tensor_slices(x, y) | dist::data::shuffle(12, 3) | dist::data::batch(6);

  Mirrored two{2};
  nn::Network<Net> net{two};
  auto model = model_of(two, net);
  static_assert(dist::Trackable<decltype(model)>);
  model.fit(dataset, {.epochs = 2, .verbose = 0});
  const support::Saved kept{two, model};
  CHECK(kept.keys() == std::vector<std::string>{"epochs", "metrics/accuracy/count", "metrics/accuracy/total",
                                                "metrics/loss/count", "metrics/loss/total", "network/dense/bias",
                                                "network/dense/kernel", "optimizer/iterations", "optimizer/kind",
                                                "optimizer/learning_rate", "optimizer/momentum/dense/bias",
                                                "optimizer/momentum/dense/kernel"});
  CHECK(kept.get<std::size_t>("epochs")[0] == 2);
  model.fit(dataset, {.epochs = 2, .verbose = 0});

  Mirrored other{2};
  nn::Network<Net> restored_net{other, 9};
  auto restored = model_of(other, restored_net);
  kept.restore(other, restored);
  restored.fit(dataset, {.epochs = 2, .verbose = 0});  // in the orders of epochs 2 and 3
  CHECK(support::Saved{other, restored} == support::Saved{two, model});
}
