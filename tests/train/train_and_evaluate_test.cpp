#include <dist/train/train_and_evaluate.hpp>

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/strategy/central_storage.hpp>

#include <doctest/doctest.h>
#include <support/saved.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

#include "callbacks/small_model.hpp"

namespace nn = dist::nn;
using dist::Task;
using dist::TaskType;
using support::what_throws;

namespace {

using Model = decltype(small::Model::model);
using Options = nn::TrainAndEvaluateOptions<Model>;

/// Counts its calls, and ends the training in an epoch by an early stop or a preemption.
struct Watches {
  std::optional<std::size_t> stops_in = std::nullopt;
  std::optional<std::size_t> told_in = std::nullopt;
  std::size_t epochs = 0;
  std::vector<double> losses = {};

  void on_epoch_end(auto& model, const nn::Epoch& epoch, const nn::Logs&) {
    ++epochs;
    if (stops_in == epoch.index) model.stop_training();
  }
  void on_train_batch_begin(std::size_t step) const {
    if (told_in == epochs && step == 1) raise(SIGTERM);
  }
  void on_test_end(std::size_t, const nn::Logs& logs) { losses.push_back(logs["loss"]); }
};

Options options_of(const support::TemporaryFolder& folder, std::size_t epochs) {
  return {.folder = folder.path(),
          .fit = {.epochs = epochs, .verbose = 0},
          .evaluator = {.timeout = std::chrono::minutes{2}, .poll = std::chrono::milliseconds{1}}};
}
/// Trains in the task of the environment: a process without a cluster.
nn::TrainAndEvaluateResult alone(small::Model& model, const Options& options, Watches& watches) {
  return nn::train_and_evaluate(model.model, small::examples(), small::examples(12), options, watches);
}
nn::TrainAndEvaluateResult as(Task task, small::Model& model, const Options& options, Watches& watches) {
  const dist::ClusterSpec cluster{{TaskType::worker, {"127.0.0.1:2222"}}, {TaskType::evaluator, {"127.0.0.1:2223"}}};
  return nn::train_and_evaluate(dist::SimpleResolver{cluster, task}, model.model, small::examples(),
                                small::examples(12), options, watches);
}
constexpr Task worker{TaskType::worker, 0};
constexpr Task evaluator{TaskType::evaluator, 0};

double evaluated(small::Model& model) { return model.model.evaluate(small::examples(12), {.verbose = 0})["loss"]; }

}  // namespace

TEST_CASE("a process without a cluster alternates training and evaluation, and continues where it ended") {
  small::Model reference;
  const nn::History expected =
      reference.model.fit(small::examples(), {.epochs = 5, .validation = small::examples(12), .verbose = 0});
  const support::TemporaryFolder folder;
  {
    small::Model model;
    Watches watches;
    const auto result = alone(model, options_of(folder, 3), watches);
    CHECK(watches.losses == std::vector<double>(expected["val_loss"].begin(), expected["val_loss"].begin() + 3));
    CHECK(result.history["loss"].size() == 3);
    REQUIRE(result.evaluation);
    CHECK((*result.evaluation)["loss"] == expected["val_loss"][2]);
    CHECK((*result.evaluation)["accuracy"] == expected["val_accuracy"][2]);
    CHECK_FALSE(result.is_preempted);
  }
  for (const std::size_t left : {2U, 0U}) {  // of five epochs
    small::Model model{7};
    Watches watches;
    const auto result = alone(model, options_of(folder, 5), watches);
    CHECK(watches.epochs == left);
    REQUIRE(result.evaluation);
    CHECK((*result.evaluation)["loss"] == expected["val_loss"][4]);
    CHECK(support::Saved{model.strategy, model.net} == support::Saved{reference.strategy, reference.net});
  }
}

TEST_CASE("CentralStorage trains the same") {
  const support::TemporaryFolder folder;
  dist::CentralStorage<dist::Cpu> strategy{2};
  nn::Network<small::Net> net{strategy, 1};
  nn::Model model{strategy, net, nn::Adam{.learning_rate = 0.01F}, nn::SparseCategoricalCrossentropy{}};
  const auto result =
      nn::train_and_evaluate(model, small::examples(), small::examples(12),
                             {.folder = folder.path(), .fit = {.epochs = 3, .validation_freq = 2, .verbose = 0}});
  CHECK(result.history["val_loss"].size() == 1);  // the last evaluation is still of the final model
  small::Model reference;
  reference.model.fit(small::examples(), {.epochs = 3, .verbose = 0});
  REQUIRE(result.evaluation);
  CHECK((*result.evaluation)["loss"] == doctest::Approx(evaluated(reference)).epsilon(1e-6));
}

TEST_CASE("workers train, and the evaluator evaluates their checkpoints until they end (spec Q27)") {
  const support::TemporaryFolder folder;
  small::Model trained;
  nn::TrainAndEvaluateResult of_worker;
  Watches of_training, of_evaluation;
  std::thread training{[&] { of_worker = as(worker, trained, options_of(folder, 6), of_training); }};
  small::Model model{7};
  const auto result = as(evaluator, model, options_of(folder, 6), of_evaluation);
  training.join();
  CHECK(of_training.losses.empty());
  CHECK(of_training.epochs == 6);
  CHECK(of_worker.history.series().size() == 2);
  CHECK_FALSE(of_worker.evaluation);
  CHECK(of_evaluation.epochs == 0);
  CHECK(result.history.epochs().empty());
  REQUIRE(result.evaluation);
  CHECK((*result.evaluation)["loss"] == evaluated(trained));
  CHECK(of_evaluation.losses.size() <= 6);

  // Without an evaluator, the workers evaluate.
  Options without = options_of(folder, 7);
  without.has_evaluator = false;
  const auto both = as(worker, trained, without, of_training);
  REQUIRE(both.evaluation);
  CHECK((*both.evaluation)["loss"] == evaluated(trained));
}

TEST_CASE("a training that stopped early has ended, also for later evaluators and workers") {
  const support::TemporaryFolder folder;
  small::Model trained;
  Watches stops{.stops_in = 1};
  as(worker, trained, options_of(folder, 50), stops);
  CHECK(stops.epochs == 2);
  Watches watches;
  small::Model model{7};
  const auto late = as(evaluator, model, options_of(folder, 50), watches);
  REQUIRE(late.evaluation);
  CHECK((*late.evaluation)["loss"] == evaluated(trained));

  small::Model again{7};
  CHECK(as(worker, again, options_of(folder, 50), watches).history.epochs().empty());
  CHECK(evaluated(again) == evaluated(trained));
  // With more epochs the training continues, and its evaluator ignores the end of the first one.
  Options waits = options_of(folder, 51);
  waits.evaluator.timeout = std::chrono::milliseconds{20};
  CHECK_THROWS_AS(as(evaluator, model, waits, watches), dist::DeadlineExceeded);
  CHECK(as(worker, again, options_of(folder, 51), watches).history.epochs().size() == 49);
}

TEST_CASE("a preempted training has not ended, and continues after a restart") {
  const support::TemporaryFolder folder;
  Options options = options_of(folder, 3);
  options.save_before_preemption = true;
  small::Model told;
  Watches tells{.told_in = 1};
  const auto result = alone(told, options, tells);
  CHECK(result.is_preempted);
  CHECK_FALSE(result.evaluation);
  CHECK(dist::ended_training(folder.path()) == std::nullopt);
  small::Model again{7};
  Watches watches;
  CHECK_FALSE(alone(again, options, watches).is_preempted);
  CHECK(watches.epochs == 2);
  CHECK(dist::ended_training(folder.path()) == 3);
}

TEST_CASE("invalid arguments are rejected") {
  const support::TemporaryFolder folder;
  small::Model model;
  Watches watches;
  const auto refused = [&](auto&& call) { return what_throws<dist::InvalidArgument>(call); };
  CHECK(refused([&] {
          alone(model, Options{}, watches);
        }).starts_with("train_and_evaluate was given no folder for checkpoints ("));
  Options twice = options_of(folder, 1);
  twice.fit.validation = small::examples(12);
  CHECK(refused([&] {
          alone(model, twice, watches);
        }).starts_with("train_and_evaluate was given two datasets to evaluate on ("));
  const auto call = [&](const dist::ClusterSpec& cluster, std::optional<Task> task) {
    nn::train_and_evaluate(dist::SimpleResolver{cluster, task}, model.model, small::examples(), small::examples(12),
                           options_of(folder, 1), watches);
  };
  const dist::ClusterSpec two{{TaskType::worker, {"a:1", "b:1"}}, {TaskType::parameter_server, {"c:1"}}};
  CHECK(refused([&] {
          call(two, Task{TaskType::parameter_server, 0});
        }) ==
        "A parameter server called train_and_evaluate (ps 0). Start a chief, workers and an evaluator; the workers "
        "hold the variables.");
  CHECK_THROWS_AS(call(two, std::nullopt), dist::InvalidArgument);
  setenv("TF_CONFIG", R"({"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": "ps", "index": 0}})", 1);
  CHECK(refused([&] { alone(model, options_of(folder, 1), watches); }).find("(ps 0)") != std::string::npos);
  unsetenv("TF_CONFIG");
  CHECK(what_throws<dist::WrongStrategy>([&] { call(two, worker); }) ==
        "The number of processes of the strategy differs from the number of tasks that train: " +
            model.strategy.describe() +
            " (2 tasks train, this one is worker 0). Give the chief and the workers a MultiWorker.");
}
