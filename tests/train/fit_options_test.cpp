#include <dist/train/fit_options.hpp>

#include <string>
#include <utility>

#include <dist/data/distribute_options.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Strategy {
  int distributed = 0;
};

struct Model {
  Strategy& own;
  int distribute(int dataset, const dist::data::InputOptions&) const {
    ++own.distributed;
    return dataset * 10;
  }
  nn::Logs evaluate_distributed(int& dataset, std::optional<std::size_t> steps, nn::TestCallback& callback) {
    callback.call<nn::hooks::on_test_begin>(std::nullopt);
    nn::Logs logs;
    logs.set("loss", dataset++);
    if (steps) logs.set("steps", static_cast<double>(*steps));
    return logs;
  }
};

nn::FitOptions<Model> given(nn::FitOptions<Model> options) { return options; }

}  // namespace

TEST_CASE("options have Keras' names and defaults") {
  const auto plain = given({});
  CHECK(plain.epochs == 1);
  CHECK(!plain.verbose);
  CHECK(!plain.validation);
  const auto options = given({.epochs = 5, .validation = 4, .verbose = 0});
  CHECK(options.epochs == 5);
  CHECK(bool{options.validation});
  CHECK(plain.initial_epoch == 0);
  CHECK(!plain.steps_per_epoch);
  CHECK(plain.steps_per_execution == 1);
  CHECK(plain.validation_freq == 1);
  CHECK(plain.class_weight.empty());
  CHECK(nn::EvaluateOptions{}.verbose == 1);
}

TEST_CASE("validation distributes its dataset once, at its first use") {
  Strategy strategy;
  Model model{strategy};
  const auto options = given({.validation = 4});
  CHECK(strategy.distributed == 0);
  struct Watch {
    int begun = 0;
    void on_test_begin(std::optional<std::size_t>) { ++begun; }
  } watch;
  nn::Callbacks watching{model, watch};
  nn::TestCallback callback{watching};
  CHECK(options.validation.evaluate(model, std::nullopt, callback)["loss"] == 40.0);
  const nn::Logs again = options.validation.evaluate(model, 3, callback);
  CHECK(again["loss"] == 41.0);  // the same object again
  CHECK(again["steps"] == 3.0);
  CHECK(watch.begun == 2);
  CHECK(strategy.distributed == 1);
}
