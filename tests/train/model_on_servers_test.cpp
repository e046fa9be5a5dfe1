#include <dist/train/model.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <dist/data/batch.hpp>
#include <dist/data/map.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/callbacks/backup_and_restore.hpp>
#include <dist/train/callbacks/early_stopping.hpp>
#include <dist/train/callbacks/lambda.hpp>
#include <dist/train/callbacks/learning_rate_scheduler.hpp>
#include <dist/train/callbacks/model_checkpoint.hpp>
#include <dist/train/callbacks/tensor_board.hpp>
#include <dist/train/model_files.hpp>
#include <dist/train/sidecar_evaluator.hpp>

#include <doctest/doctest.h>

#include "coordinator/served_job.hpp"
#include "summary/wire.hpp"
#include "support/temporary_folder.hpp"
#include "support/what_throws.hpp"
#include "terminal.hpp"

namespace nn = dist::nn;
using dist_test::Counted;
using support::what_throws;

namespace {

using Net = nn::Sequential<nn::Input<4>, nn::Dense<8>, nn::BatchNormalization<>, nn::Activate<nn::Relu>, nn::Dense<3>>;

/// Returns four batches of six examples, or fewer.
auto examples(std::size_t rows = 24) {
  dist::Tensor<float> x{{rows, 4}};
  dist::Tensor<std::int32_t> y{{rows}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 5) % 7) - 3;
  for (std::size_t i = 0; i < rows; ++i) y[i] = static_cast<std::int32_t>(i % 3);
  return dist::data::tensor_slices(x, y) | dist::data::batch(6);
}
const auto on_worker = [](const dist::InputContext&) { return examples(); };

template <class S, class N>
auto model_of(S& strategy, N& net) {
  return nn::Model{strategy,
                   net,
                   nn::Adam{.learning_rate = 0.05F},
                   nn::Regularized{nn::SparseCategoricalCrossentropy{}, nn::L2{1e-3F}},
                   nn::SparseCategoricalAccuracy{},
                   nn::ConfusionMatrix{.classes = 3},
                   nn::Weighted{nn::SparseCategoricalAccuracy{}}};
}

/// A job with a network and a model.
struct Trained {
  dist_test::ServedJob<Counted> job;
  nn::Network<Net> net;
  decltype(model_of(job.strategy(), net)) model = model_of(job.strategy(), net);

  explicit Trained(std::size_t workers, std::uint64_t seed = 3,
                   std::uint64_t max_staleness = dist::server::any_staleness)
      : job(2, workers, {.partitioner = dist::FixedShards{2}, .bucket_bytes = 1, .max_staleness = max_staleness}),
        net(job.strategy(), seed) {}
};
struct Alone {
  dist::Default strategy;
  nn::Network<Net> net;
  decltype(model_of(strategy, net)) model = model_of(strategy, net);

  explicit Alone(std::uint64_t seed = 3) : net(strategy, seed) {}
};

std::vector<float> values_of(const dist::Tensor<float>& tensor) {
  return {tensor.elements().begin(), tensor.elements().end()};
}

}  // namespace

TEST_CASE("fit with one worker on parameter servers has the history and weights of fit under Default (spec Q14, Q18)") {
  Alone alone;
  const nn::History expected = alone.model.fit(
      examples(), {.epochs = 3, .validation = examples(12), .class_weight = {1, 2, 0.5F}, .verbose = 0});
  Trained trained{1};
  const nn::History history = trained.model.fit(
      on_worker,
      {.epochs = 3, .steps_per_epoch = 4, .validation = examples(12), .class_weight = {1, 2, 0.5F}, .verbose = 0});
  std::string names;
  for (const auto& series : history.series()) {
    names += series.name + " ";
    for (std::size_t epoch = 0; epoch < 3; ++epoch) CHECK(series.values[epoch] == expected[series.name][epoch]);
  }
  CHECK(names ==
        "loss accuracy confusion_matrix weighted_accuracy val_loss val_accuracy val_confusion_matrix "
        "val_weighted_accuracy ");
  const auto scope = trained.job.scope();
  for (const nn::Parameter& parameter : trained.net.layout())
    CHECK(values_of(trained.net.parameter(scope, parameter.name())) ==
          values_of(alone.net.parameter(alone.strategy.scope(), parameter.name())));
  CHECK(trained.model.optimizer().iterations(scope) == 12);
  CHECK(trained.model.is_chief());
  CHECK(trained.model.summary() == alone.model.summary());

  // This process evaluates and predicts with the servers' parameters.
  const nn::Logs logs = trained.model.evaluate(examples(12), {.verbose = 0});
  CHECK(logs["loss"] == alone.model.evaluate(examples(12), {.verbose = 0})["loss"]);
  dist::Tensor<float> x{{2, 4}};
  x[3] = 1;
  CHECK(values_of(trained.model.predict(x, {.verbose = 0})) == values_of(alone.model.predict(x, {.verbose = 0})));
  dist::Tensor<std::int32_t> y{{2}};
  CHECK(trained.model.evaluate(x, y, {.verbose = 0})["loss"] == alone.model.evaluate(x, y, {.verbose = 0})["loss"]);
}

TEST_CASE("workers train together asynchronously, and restart their datasets at the end") {
  Trained trained{3};
  trained.model.optimizer().set_learning_rate(0.02F);  // the loss decreases despite stale gradients
  const Terminal terminal;
  const nn::History history =
      trained.model.fit([](const dist::InputContext& worker) { return examples(12 + 6 * worker.input_pipeline_id()); },
                        {.epochs = 4, .steps_per_epoch = 60, .console = terminal.console(false)});
  CHECK(history["loss"][3] <
        std::log(3.0));  // the loss of random guesses; the first epoch may be one worker's alone, on fewer examples
  CHECK(trained.model.optimizer().iterations(trained.job.scope()) == 240);
}

TEST_CASE("a scheduled function takes steps_per_execution steps, the last one of an epoch fewer (spec Q08)") {
  const std::string runs{dist::detail::run_method};
  Trained one{1}, several{1};
  Counted::take(runs);
  const nn::History expected = one.model.fit(on_worker, {.epochs = 2, .steps_per_epoch = 5, .verbose = 0});
  CHECK(Counted::take(runs) == 10);
  const nn::History history =
      several.model.fit(on_worker, {.epochs = 2, .steps_per_epoch = 5, .steps_per_execution = 3, .verbose = 0});
  CHECK(Counted::take(runs) == 4);
  CHECK(several.model.optimizer().iterations(several.job.scope()) == 10);
  for (std::size_t epoch = 0; epoch < 2; ++epoch) CHECK(history["loss"][epoch] == expected["loss"][epoch]);
  CHECK_THROWS_WITH_AS(several.model.fit(on_worker, {.steps_per_epoch = 5, .steps_per_execution = 0, .verbose = 0}),
                       doctest::Contains("FitOptions.steps_per_execution is out of range"), dist::InvalidArgument);
}

TEST_CASE("gradients that are more stale than the strategy allows are rejected and counted") {
  static Trained* current;
  static dist::Tensor<float> kernel;
  const auto disturbed = [](const dist::InputContext&) {
    return examples() | dist::data::map([](const auto& batch) {
             // A push of another client, after this step has pulled.
             current->net.assign_parameter(current->job.scope(), "dense/kernel", kernel);
             return batch;
           });
  };
  for (const std::uint64_t max_staleness : {0U, 1U}) {
    Trained trained{1, 3, max_staleness};
    current = &trained;
    kernel = trained.net.parameter(trained.job.scope(), "dense/kernel");
    const auto bias = values_of(trained.net.parameter(trained.job.scope(), "dense/bias"));
    trained.model.fit(disturbed, {.steps_per_epoch = 1, .verbose = 0});
    const auto scope = trained.job.scope();
    CHECK((values_of(trained.net.parameter(scope, "dense/kernel")) == values_of(kernel)) == (max_staleness == 0));
    CHECK(values_of(trained.net.parameter(scope, "dense/bias")) != bias);
    const dist::server::Staleness staleness = dist::staleness(scope, trained.net.parameters());
    CHECK(staleness.refused == (max_staleness == 0 ? 2 : 0));  // by both shards of the kernel
    CHECK(staleness.max == max_staleness);
    CHECK(trained.model.optimizer().iterations(scope) == 1);
  }
}

TEST_CASE("TensorBoard writes epochs, evaluations and weights (spec Q22)") {
  const support::TemporaryFolder folder;
  Trained trained{1};
  nn::callbacks::TensorBoard board{folder.path("logs"), {.histogram_freq = 1}};
  trained.model.fit(on_worker, {.epochs = 2, .steps_per_epoch = 4, .validation = examples(12), .verbose = 0}, board);
  const auto tags_of = [&](const std::string& run) {
    std::vector<std::string> tags;
    for (const auto& file : std::filesystem::directory_iterator{folder.path("logs/" + run)})
      for (const std::string& bytes : dist_test::events_of(file.path().string()))
        if (const dist_test::Wire event{bytes}; !event.all(5).empty())
          tags.push_back(event.message(5).message(1).bytes(1) + "@" +
                         std::to_string(event.all(2).empty() ? 0 : event.integer(2)));
    return tags;
  };
  const auto has = [](const std::vector<std::string>& tags, const std::string& tag) {
    return std::count(tags.begin(), tags.end(), tag) == 1;
  };
  const std::vector<std::string> train = tags_of("train"), validation = tags_of("validation");
  CHECK(has(train, "epoch_loss@1"));
  CHECK(has(train, "epoch_learning_rate@0"));
  CHECK(has(train, "dense/kernel@1"));
  CHECK(has(validation, "epoch_accuracy@1"));
  CHECK(has(validation, "evaluation_loss_vs_iterations@8"));
}

TEST_CASE("fit needs the number of steps per epoch, and rejects invalid options (spec Q16, Q25)") {
  Trained trained{1};
  CHECK(
      what_throws([&] { trained.model.fit(on_worker, {.epochs = 2, .verbose = 0}); }) ==
      "fit under a ParameterServer needs the number of steps of an epoch (workers make their own datasets, so the "
      "number of batches is unknown). Give FitOptions.steps_per_epoch, the number of batches of all workers together.");
  CHECK(what_throws([&] { trained.model.fit(on_worker, {.steps_per_epoch = 1, .verbose = 1}); }) ==
        "fit under a ParameterServer cannot show a progress bar (verbose is 1, and the steps of workers are not "
        "reported one by one). Set FitOptions.verbose to 2 for one line per epoch, or to 0 for silence.");
  CHECK_THROWS_AS(trained.model.fit(on_worker, {.steps_per_epoch = 0, .verbose = 0}), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(
      trained.model.fit([](const dist::InputContext&) { return examples(0); }, {.steps_per_epoch = 1, .verbose = 0}),
      doctest::Contains("The dataset of a worker has no batch"), dist::RemoteError);
  // An exception leaves the model unchanged.
  trained.model.fit(on_worker, {.steps_per_epoch = 1, .verbose = 0});
  CHECK(trained.model.optimizer().iterations(trained.job.scope()) == 1);
}

TEST_CASE("callbacks are called between epochs, with the servers' parameters (spec Q21, Q23)") {
  Trained trained{2};
  std::vector<std::int64_t> iterations;
  nn::callbacks::LearningRateScheduler rates{[](std::size_t epoch) { return epoch < 2 ? 0.05F : 0.0F; }};
  nn::callbacks::EarlyStopping stopping{
      {.monitor = "loss", .min_delta = 1e-3, .patience = 1, .restore_best_weights = true, .start_from_epoch = 2}};
  auto seen = nn::callbacks::lambda<nn::hooks::on_epoch_end>([&](auto& model, const nn::Epoch&, const nn::Logs&) {
    iterations.push_back(model.optimizer().iterations(model.strategy().scope()));
  });
  const nn::History history =
      trained.model.fit(on_worker, {.epochs = 9, .steps_per_epoch = 8, .verbose = 0}, rates, stopping, seen);
  CHECK(iterations.size() < 9);
  CHECK(iterations[1] == 16);
  CHECK(stopping.stopped_epoch() == iterations.size() - 1);
  CHECK(history["lr"][0] == doctest::Approx(0.05));
  CHECK(history["lr"][2] == 0);
}

TEST_CASE("a model is saved on servers and loaded under Default and on other servers, and vice versa (spec Q28, K11)") {
  const support::TemporaryFolder folder;
  Alone alone{5};
  double expected = 0;
  {
    Trained trained{1};
    trained.model.fit(on_worker, {.epochs = 2, .steps_per_epoch = 4, .verbose = 0});
    trained.model.save(folder.path("servers"));
    expected = trained.model.evaluate(examples(), {.verbose = 0})["loss"];
  }
  alone.model.load(folder.path("servers"));
  CHECK(alone.model.evaluate(examples(), {.verbose = 0})["loss"] == expected);
  CHECK(alone.model.optimizer().iterations(alone.strategy.scope()) == 8);
  // Both continue bitwise identically.
  Trained other{1, 7};
  other.model.load(folder.path("servers"));
  const nn::History here = alone.model.fit(examples(), {.epochs = 1, .verbose = 0});
  const nn::History there = other.model.fit(on_worker, {.steps_per_epoch = 4, .verbose = 0});
  CHECK(here["loss"][0] == there["loss"][0]);
  alone.model.save(folder.path("alone"));
  other.model.fit(on_worker, {.steps_per_epoch = 4, .verbose = 0});
  other.model.load(folder.path("alone"));
  CHECK(other.model.optimizer().iterations(other.job.scope()) == 12);
  CHECK(other.model.evaluate(examples(), {.verbose = 0})["loss"] ==
        alone.model.evaluate(examples(), {.verbose = 0})["loss"]);
  alone.model.save_weights(folder.path("weights.safetensors"));
  Trained third{1, 8};
  third.model.load_weights(folder.path("weights.safetensors"));
  CHECK(third.model.evaluate(examples(), {.verbose = 0})["loss"] ==
        alone.model.evaluate(examples(), {.verbose = 0})["loss"]);
}

TEST_CASE(
    "an evaluator process evaluates checkpoints of a fit, and an interrupted fit continues (spec Q19, Q20, Q27)") {
  const support::TemporaryFolder folder;
  Trained trained{1};
  {
    nn::callbacks::ModelCheckpoint saves{folder.path("checkpoints/ckpt_{epoch}")};
    nn::callbacks::BackupAndRestore backup{folder.path("backup")};
    auto interrupts = nn::callbacks::lambda<nn::hooks::on_epoch_begin>([&](const nn::Epoch& epoch) {
      if (epoch.index == 2) throw dist::InvalidArgument("The fit was interrupted", "it is a test", "Go on");
    });
    CHECK_THROWS_AS(
        trained.model.fit(on_worker, {.epochs = 3, .steps_per_epoch = 4, .verbose = 0}, saves, backup, interrupts),
        dist::InvalidArgument);
  }
  Alone evaluating{9};
  nn::SidecarEvaluator evaluator{evaluating.model, folder.path("checkpoints")};
  const auto logs = evaluator.evaluate_new(examples(), {.verbose = 0});
  REQUIRE(logs);
  CHECK((*logs)["loss"] == trained.model.evaluate(examples(), {.verbose = 0})["loss"]);

  Trained again{1, 11};
  nn::callbacks::BackupAndRestore backup{folder.path("backup")};
  const nn::History rest = again.model.fit(on_worker, {.epochs = 3, .steps_per_epoch = 4, .verbose = 0}, backup);
  CHECK(rest.epochs().size() == 1);
  CHECK(rest.epochs()[0] == 2);
  Alone whole;
  const nn::History all = whole.model.fit(examples(), {.epochs = 3, .verbose = 0});
  CHECK(rest["loss"][0] == all["loss"][2]);
}

TEST_CASE("callbacks that need hooks between batches are rejected (spec Q24)") {
  const support::TemporaryFolder folder;
  Trained trained{1};
  const auto fit_with = [&](auto callback) {
    return what_throws([&] { trained.model.fit(on_worker, {.steps_per_epoch = 1, .verbose = 0}, callback); });
  };
  CHECK(fit_with(nn::callbacks::ModelCheckpoint{folder.path("{batch}"), {.save_freq = 1}}) ==
        "ModelCheckpointOptions.save_freq is for models that call callbacks between training batches (under a "
        "ParameterServer, workers do not wait for each other, and callbacks are called between epochs). Leave it out.");
  CHECK(fit_with(nn::callbacks::BackupAndRestore{folder.path("backup"), {.save_freq = 1}})
            .starts_with("BackupAndRestoreOptions.save_freq is for"));
  CHECK(fit_with(nn::callbacks::BackupAndRestore{folder.path("backup"), {.save_before_preemption = true}})
            .starts_with("BackupAndRestoreOptions.save_before_preemption is for"));
  CHECK(fit_with(nn::callbacks::TensorBoard{folder.path("logs"), {.update_freq = 1}})
            .starts_with("TensorBoardOptions.update_freq is for"));
}
