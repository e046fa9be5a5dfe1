#include <dist/train/callbacks/tensor_board.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <summary/wire.hpp>
#include <support/temporary_folder.hpp>

#include "small_model.hpp"

namespace nn = dist::nn;
using dist_test::Wire;
using nn::callbacks::TensorBoard;

namespace {

struct Scalar {
  std::string tag;
  std::int64_t step;
  float value;
};
struct Content {
  std::vector<Scalar> scalars;
  std::vector<std::string> histograms;
  std::vector<std::string> graphs;
};

/// Returns the content of the only event file in a folder.
Content content(const std::string& folder) {
  Content all;
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator{folder}) {
    ++files;
    for (const std::string& bytes : dist_test::events_of(file.path().string())) {
      const Wire event{bytes};
      for (const auto& graph : event.all(4)) all.graphs.push_back(graph.bytes);
      if (event.all(5).empty()) continue;
      const Wire value = event.message(5).message(1);
      const std::string plugin = value.message(9).message(1).bytes(1);
      const std::int64_t step = event.all(2).empty() ? 0 : static_cast<std::int64_t>(event.integer(2));
      if (plugin == "scalars")
        all.scalars.push_back({value.bytes(1), step, dist_test::scalar_of(value.message(8))});
      else
        all.histograms.push_back(value.bytes(1));
    }
  }
  CHECK(files == 1);
  return all;
}
float value_of(const Content& from, const std::string& tag, std::int64_t step) {
  for (const Scalar& scalar : from.scalars)
    if (scalar.tag == tag && scalar.step == step) return scalar.value;
  FAIL("no " << tag << " at step " << step);
  return 0;
}

}  // namespace

TEST_CASE("train and validation have Keras' tags, the learning rate, and the network's graph (spec Q22)") {
  const support::TemporaryFolder folder;
  small::Model trained;
  const nn::History history = trained.model.fit(
      small::examples(), {.epochs = 2, .validation = small::examples(12), .verbose = 0}, TensorBoard{folder.path()});
  const Content train = content(folder.path("train"));
  const Content validation = content(folder.path("validation"));
  CHECK(train.scalars.size() == 6);
  for (const int epoch : {0, 1}) {
    const auto at = static_cast<std::size_t>(epoch);
    CHECK(value_of(train, "epoch_loss", epoch) == static_cast<float>(history["loss"][at]));
    CHECK(value_of(train, "epoch_accuracy", epoch) == static_cast<float>(history["accuracy"][at]));
    CHECK(value_of(train, "epoch_learning_rate", epoch) == 0.01F);
    CHECK(value_of(validation, "epoch_loss", epoch) == static_cast<float>(history["val_loss"][at]));
    // Four steps per epoch.
    CHECK(value_of(validation, "evaluation_accuracy_vs_iterations", 4 * (epoch + 1)) ==
          static_cast<float>(history["val_accuracy"][at]));
  }
  CHECK(validation.scalars.size() == 8);
  REQUIRE(train.graphs.size() == 1);
  std::string nodes;
  for (const auto& node : Wire{train.graphs[0]}.all(1)) {
    const Wire read{node.bytes};
    nodes += read.bytes(1);
    for (const std::string& input : read.strings(3)) nodes += "(" + input + ")";
    nodes += " ";
  }
  CHECK(nodes == "input dense(input) dense_1(dense) ");
  CHECK(train.histograms.empty());
}

TEST_CASE("evaluations outside of a fit are written to one file") {
  const support::TemporaryFolder folder;
  small::Model trained;
  TensorBoard board{folder.path()};
  for (const std::int64_t steps : {5, 9}) {
    trained.model.optimizer().set_iterations(trained.strategy.scope(), steps);
    const nn::Logs logs = trained.model.evaluate(small::examples(12), {.verbose = 0}, board);
    const Content validation = content(folder.path("validation"));  // at this moment
    CHECK(value_of(validation, "evaluation_loss_vs_iterations", steps) == static_cast<float>(logs["loss"]));
    CHECK(validation.scalars.size() == (steps == 5 ? 2 : 4));
  }
}

TEST_CASE("histograms of the weights and logs of batches are optional") {
  const support::TemporaryFolder folder;
  small::Model trained;
  trained.model.fit(small::examples(), {.epochs = 3, .verbose = 0},
                    TensorBoard{folder.path(), {.histogram_freq = 2, .write_graph = false, .update_freq = 3}});
  const Content train = content(folder.path("train"));
  CHECK(train.graphs.empty());
  CHECK(train.histograms == std::vector<std::string>{"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias",
                                                     "dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"});
  std::vector<std::int64_t> steps;
  for (const Scalar& scalar : train.scalars)
    if (scalar.tag == "batch_loss") steps.push_back(scalar.step);
  CHECK(steps == std::vector<std::int64_t>{3, 6, 9, 12});
  CHECK_FALSE(std::filesystem::exists(folder.path("validation")));
}

TEST_CASE("a TensorBoard writes one file in each folder, for all its fits and evaluations") {
  const support::TemporaryFolder folder;
  small::Model trained;
  TensorBoard board{folder.path()};
  CHECK(&board.writer(trained.model, "train") == &board.writer(trained.model, "train"));
  CHECK(board.writer(trained.model).path().starts_with(folder.path("events.out.tfevents.")));
  for (const std::size_t first : {0U, 1U})
    trained.model.fit(small::examples(), {.epochs = first + 1, .initial_epoch = first, .verbose = 0}, board);
  for (int evaluation = 0; evaluation < 2; ++evaluation)
    trained.model.evaluate(small::examples(), {.verbose = 0}, board);
  const Content train = content(folder.path("train"));  // no events are pending
  CHECK(train.scalars.size() == 6);
  CHECK(train.graphs.size() == 1);
  CHECK(content(folder.path("validation")).scalars.size() == 4);
}

TEST_CASE("a folder that cannot be written is reported before training") {
  small::Model trained;
  CHECK_THROWS_AS(trained.model.fit(small::examples(), {.verbose = 0}, TensorBoard{"/dev/null/logs"}), dist::FileError);
  CHECK_THROWS_AS((TensorBoard{"logs", {.update_freq = 0}}), dist::InvalidArgument);
}

TEST_CASE("the summary of a model is the summary of its network") {
  const small::Model trained;
  CHECK(trained.model.summary().find("dense_1  (rows, 3)") != std::string::npos);
}
