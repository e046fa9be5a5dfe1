// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/data.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/train/callbacks/early_stopping.hpp>
#include <dist/train/callbacks/model_checkpoint.hpp>
#include <dist/train/callbacks/tensor_board.hpp>
#include <dist/train/model.hpp>
#include <dist/train/model_files.hpp>
#include <dist/train/train_and_evaluate.hpp>

#include "../train/linear.hpp"
#include "../train/random_fits.hpp"
#include "../train/terminal.hpp"
#include "of_workers.hpp"
#include "shared_folder.hpp"

namespace nn = dist::nn;
using Workers = dist::MultiWorker<dist::RingAllReduce>;
using namespace of_workers;

namespace {

constexpr float rate = 0.125f;
const nn::SGD descent{.learning_rate = rate};

/// Stops in the middle of an epoch, on one worker.
struct StopsOnLast {
  std::size_t now = 0;
  void on_epoch_begin(const nn::Epoch& begun) { now = begun.index; }
  void on_train_batch_end(auto& model, std::size_t step, nn::CurrentLogs) {
    if (is_last() && now == 1 && step == 0) model.stop_training();
  }
};

/// Writes to TensorBoard without checking its rank, and reads values together with all workers.
struct ShowsWeights {
  nn::callbacks::TensorBoard& board;
  void on_train_begin(auto& model) {
    const dist::summary::Hyperparameter values[] = {{"rate", rate}};
    board.writer(model).session_start(values);
  }
  void on_epoch_end(auto& model, const nn::Epoch& epoch, const nn::Logs&) {
    const auto weights = model.network().parameters().whole(model.strategy().scope());
    board.writer(model, "weights").histogram("weights", weights, static_cast<std::int64_t>(epoch.index));
  }
};

}  // namespace

TEST_CASE("fit equals plain loops, however few rows a worker's replica has (spec P05, P06)") {
  for (const std::size_t replicas : {1U, 2U}) {
    Workers strategy{{.replicas = replicas}};
    random_fits::check_fits(strategy);
  }
}

TEST_CASE("a step averages over the rows of all workers, with data of different sizes") {
  Workers strategy{{.replicas = 1}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  const std::size_t all = ranks() * (ranks() + 1) / 2;
  const Points points{all, all};
  auto data = strategy.distribute_datasets_from_function([&](const dist::InputContext& input) {
    const std::size_t first = input.input_pipeline_id() * (input.input_pipeline_id() + 1) / 2;
    const std::size_t mine = input.input_pipeline_id() + 1;
    dist::Tensor<double> x{{mine, 2}}, y{{mine, 1}};
    for (std::size_t row = 0; row < mine; ++row) {
      for (std::size_t axis = 0; axis < 2; ++axis) x[2 * row + axis] = points.x(first + row, axis);
      y[row] = points.y(first + row);
    }
    return dist::data::tensor_slices(std::move(x), std::move(y)) | dist::data::batch(mine);
  });
  const nn::History history = model.fit_distributed(data, {.epochs = 3, .verbose = 0});
  PlainLinear plain;
  for (std::size_t epoch = 0; epoch < 3; ++epoch)
    CHECK(history["loss"][epoch] == doctest::Approx(plain.train(points, double{rate})));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(net.parameters().read(strategy.scope())[i] == doctest::Approx(plain.weights[i]));
}

TEST_CASE("a NaN loss on one worker ends the epoch on all workers after the same batch (spec Q23)") {
  Workers strategy{{.replicas = 1}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  const std::size_t batch = ranks();
  dist::Tensor<double> x{{8 * batch, 2}}, y{{8 * batch, 1}};
  y[3 * batch - 1] = std::numeric_limits<double>::quiet_NaN();  // the last worker's row of the third batch
  struct Counts {
    std::size_t batches = 0;
    void on_train_batch_end(std::size_t, nn::CurrentLogs) { ++batches; }
  } counts;
  const nn::History history = model.fit(x, y, {.epochs = 4, .verbose = 0, .batch_size = batch, .shuffle = false},
                                        nn::callbacks::TerminateOnNaN{}, counts);
  CHECK(counts.batches == 3);
  REQUIRE(history["loss"].size() == 1);
  CHECK(std::isnan(history["loss"][0]));
}

TEST_CASE("workers divide the rows of a single file, and follow the given policy (spec I10)") {
  const SharedFolder folder;
  const std::size_t rows = 11;
  const Points points{rows, 4};
  if (my_rank() == 0) {
    std::ofstream file{folder.path("points.csv")};
    file.precision(17);
    file << "x0,x1,y\n";
    for (std::size_t row = 0; row < rows; ++row)
      file << points.x(row, 0) << ',' << points.x(row, 1) << ',' << points.y(row) << '\n';
  }
  meet();
  struct Row {
    double x0, x1, y;
  };
  const auto from_file = dist::data::csv(folder.path("points.csv"), dist::data::column("x0", &Row::x0),
                                         dist::data::column("x1", &Row::x1), dist::data::column("y", &Row::y)) |
                         dist::data::map([](const Row& row) {
                           dist::Tensor<double> x{{2}};
                           x[0] = row.x0;
                           x[1] = row.x1;
                           return dist::data::Example{std::move(x), row.y};
                         }) |
                         dist::data::batch(4);
  Workers strategy{{.replicas = 1}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  PlainLinear plain;
  const double loss = plain.train(points, double{rate});
  const nn::History history =
      model.fit(from_file, {.validation = {from_file, dist::data::AutoShardPolicy::off}, .verbose = 0});
  CHECK(history["loss"][0] == doctest::Approx(loss));
  CHECK(history["val_loss"][0] == doctest::Approx(plain.mean_squared_error(points)));
  CHECK(model.evaluate(from_file, {.verbose = 0})["loss"] == doctest::Approx(plain.mean_squared_error(points)));
  if (ranks() > 1)
    for (const bool trains : {true, false}) {
      const auto policy = dist::data::AutoShardPolicy::file;
      CHECK(has(failure([&] {
                  if (trains)
                    model.fit(from_file, {.auto_shard_policy = policy, .verbose = 0});
                  else
                    model.evaluate(from_file, {.verbose = 0, .auto_shard_policy = policy});
                }),
                "There are fewer files than workers"));
    }
}

TEST_CASE("all workers save the same batches, the best by their common loss") {
  const SharedFolder folder;
  Workers strategy{{.replicas = 1}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  model.fit(Points{16, 4}, {.verbose = 0},
            nn::callbacks::ModelCheckpoint{folder.path("at_{batch}_{loss:.3f}"),
                                           {.monitor = "loss", .save_best_only = true, .save_freq = 2}});
  CHECK(dist::latest_checkpoint(folder.path()));
}

TEST_CASE("predictions are in the order of the examples on all workers (spec Q12)") {
  Workers strategy{{.replicas = 2}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  model.fit(Points{16, 8}, {.epochs = 2, .verbose = 0});
  const auto& read = net.parameters().read(strategy.scope());
  for (const std::size_t rows : {1U, 7U, 40U}) {
    CAPTURE(rows);
    const Points points{rows, 3};
    dist::Tensor<double> x{{rows, 2}};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = points.x(i / 2, i % 2);
    const dist::Tensor<double> predicted = model.predict(x, {.verbose = 0, .batch_size = 3});
    REQUIRE(predicted.shape() == dist::Shape{rows, 1});
    for (std::size_t row = 0; row < rows; ++row)
      CHECK(predicted[row] == read[0] * x[2 * row] + read[1] * x[2 * row + 1] + read[2]);
  }
}

TEST_CASE("a stop on one worker stops all, with several workers after the epoch") {
  Workers strategy{{.replicas = 1}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  StopsOnLast stop;
  CHECK(model.fit(Points{16, 4}, {.epochs = 5, .verbose = 0}, stop).epochs().size() == 2);
  const std::int64_t steps = model.optimizer().iterations(strategy.scope());
  CHECK(steps == (ranks() == 1 ? 5 : 8));
}

TEST_CASE("the chief shows the progress, and train_on_batch is rejected on several workers (spec Q15)") {
  Workers strategy{{.replicas = 1}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  const Terminal terminal;
  model.fit(Points{16, 4}, {.console = terminal.console(false)});
  CHECK(terminal.messages->empty() == (my_rank() != 0));
  dist::Tensor<double> x{{4, 2}};
  dist::Tensor<double> y{{4, 1}};
  if (ranks() > 1)
    CHECK_THROWS_AS(static_cast<void>(model.train_on_batch(x, y)), dist::WrongStrategy);
  else
    CHECK(model.train_on_batch(x, y).size() == 1);
}

TEST_CASE("several workers alternate training and evaluation, and evaluate together what they saved (spec Q27)") {
  const SharedFolder folder;
  Workers strategy{{.replicas = 1}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  const auto result = nn::train_and_evaluate(model, Points{16, 4}, Points{12, 6},
                                             {.folder = folder.path(), .fit = {.epochs = 3, .verbose = 0}});
  CHECK(result.history["val_loss"].size() == 3);
  REQUIRE(result.evaluation);
  CHECK((*result.evaluation)["loss"] == result.history["val_loss"].back());

  Linear<Workers> other{strategy};
  nn::Model evaluated{strategy, other, descent, nn::MeanSquaredError{}};
  nn::SidecarEvaluator evaluator{evaluated, folder.path(), {.poll = std::chrono::milliseconds{1}}};
  const auto logs = evaluator.run(Points{12, 6}, {.verbose = 0});
  REQUIRE(logs);
  CHECK((*logs)["loss"] == (*result.evaluation)["loss"]);
  CHECK(evaluated.optimizer().iterations(strategy.scope()) == 12);
  nn::SidecarEvaluator waits{evaluated,
                             folder.path("empty"),
                             {.timeout = std::chrono::milliseconds{20}, .poll = std::chrono::milliseconds{1}}};
  CHECK(failure([&] {
          waits.run(Points{12, 6});
        }).starts_with("DeadlineExceeded: The evaluator waited too long for a checkpoint in "));
  const dist::SimpleResolver of_evaluator{{{dist::TaskType::worker, {"a:1"}}},
                                          dist::Task{dist::TaskType::evaluator, 0}};
  CHECK(failure([&] {
          nn::train_and_evaluate(of_evaluator, model, Points{16, 4}, Points{12, 6}, {.folder = folder.path()});
        }) ==
        dist::concat(
            "The strategy belongs to a different task than the resolver of train_and_evaluate (its task is worker ",
            my_rank(), ", and SimpleResolver names evaluator 0). Give both the same resolver."));
}

TEST_CASE("the chief alone writes files, with the same calls on all workers") {
  const SharedFolder folder;
  Workers strategy{{.replicas = 1}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  {
    nn::callbacks::TensorBoard board{folder.path("logs")};
    ShowsWeights shows{board};
    model.fit(Points{16, 4}, {.epochs = 2, .verbose = 0}, board, shows);
  }
  meet();
  const auto files = [](const std::string& path) { return dist::detail::names_in(path).size(); };
  CHECK(files(folder.path("logs/weights")) == 1);
  CHECK(files(folder.path("logs/train")) == 1);
  CHECK(files(folder.path("logs")) == 3);  // these two, and the events of the hyperparameters
}

TEST_CASE("workers save and load a model together, and a second model cannot use their folder") {
  const SharedFolder folder;
  Workers strategy{{.replicas = 1}};
  Linear<Workers> net{strategy};
  nn::Model model{strategy, net, descent, nn::MeanSquaredError{}};
  Linear<Workers> other_net{strategy};
  nn::Model other{strategy, other_net, descent, nn::MeanSquaredError{}};
  std::string why;
  struct Tries {
    decltype(other)& model;
    std::string path;
    std::string& why;
    void on_epoch_end(const nn::Epoch&, const nn::Logs&) {
      why = failure([&] { model.fit(Points{16, 4}, {.verbose = 0}, nn::callbacks::ModelCheckpoint{path}); });
    }
  } tries{other, folder.path("ckpt/other"), why};
  model.fit(Points{16, 4}, {.epochs = 1, .verbose = 0},
            nn::callbacks::ModelCheckpoint{folder.path("ckpt/ckpt_{epoch}")}, tries);
  CHECK(has(why, "is a folder that already has a writer of checkpoints (this program itself: process "));
  CHECK(why.starts_with(my_rank() == 0 ? "File '" : "PeerError: "));

  const auto expected = model.evaluate(Points{16, 4}, {.verbose = 0});
  other.load(folder.path("ckpt/ckpt_1"));
  CHECK(other.evaluate(Points{16, 4}, {.verbose = 0})["loss"] == expected["loss"]);
  model.save_weights(folder.path("net.npz"));
  other.fit(Points{16, 4}, {.verbose = 0});
  CHECK(other.evaluate(Points{16, 4}, {.verbose = 0})["loss"] != expected["loss"]);
  other.load_weights(folder.path("net.npz"));
  CHECK(other.evaluate(Points{16, 4}, {.verbose = 0})["loss"] == expected["loss"]);
}
