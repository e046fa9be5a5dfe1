#include <dist/train/sidecar_evaluator.hpp>

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <dist/checkpoint/checkpoint_manager.hpp>
#include <dist/train/callbacks/lambda.hpp>
#include <dist/train/callbacks/model_checkpoint.hpp>

#include <doctest/doctest.h>
#include <support/stderr_of.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

#include "callbacks/small_model.hpp"

namespace nn = dist::nn;
using std::chrono::milliseconds;
using support::what_throws;

namespace {

const nn::EvaluateOptions silent{.verbose = 0};

/// Losses by the number of optimizer steps.
using Losses = std::map<std::int64_t, double>;

/// Records evaluations.
struct Noted {
  Losses losses;
  void on_test_end(auto& model, std::size_t, const nn::Logs& logs) {
    losses[model.optimizer().iterations(model.strategy().scope())] = logs["loss"];
  }
};
using Evaluator = nn::SidecarEvaluator<decltype(small::Model::model)>;
std::optional<nn::Logs> look(Evaluator& evaluator, Noted& noted) {
  return evaluator.evaluate_new(small::examples(12), silent, noted);
}

/// A training that saves its model after steps of one batch each, and records the model's evaluations.
struct Training {
  support::TemporaryFolder folder;
  small::Model trained;
  dist::Checkpoint<small::Strategy> checkpoint{trained.strategy};
  Losses expected;

  Training() { checkpoint.add("model", trained.model); }

  void step() {
    dist::Tensor<float> x{{4, 4}};
    dist::Tensor<std::int32_t> y{{4}};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 5 + expected.size()) % 7) - 3;
    for (std::size_t i = 0; i < 4; ++i) y[i] = static_cast<std::int32_t>(i % 3);
    trained.model.train_on_batch(x, y);
    const double loss = trained.model.evaluate(small::examples(12), silent)["loss"];
    expected[trained.model.optimizer().iterations(trained.strategy.scope())] = loss;
  }
  /// Returns the tensor file of a checkpoint.
  [[nodiscard]] std::string data_of(const std::string& name) const {
    for (const std::string& file : folder.names(name))
      if (file.starts_with("data-")) return name + "/" + file;
    return "";
  }
};

}  // namespace

TEST_CASE("the newest unseen checkpoint is evaluated, and earlier ones are skipped (spec Q27)") {
  Training training;
  dist::CheckpointManager manager{training.checkpoint, training.folder.path(), {.max_to_keep = 2}};
  small::Model model{7};
  Evaluator evaluator{model.model, training.folder.path()};
  Noted noted;
  CHECK_FALSE(look(evaluator, noted));
  CHECK(evaluator.evaluated().empty());
  for (int i = 0; i < 3; ++i) {
    training.step();
    manager.save();
  }
  REQUIRE(look(evaluator, noted));
  CHECK(evaluator.evaluated() == training.folder.path("ckpt-3"));
  CHECK(noted.losses == Losses{{3, training.expected[3]}});
  CHECK_FALSE(look(evaluator, noted));
  for (int i = 0; i < 2; ++i) {
    training.step();
    manager.save();
  }
  const std::optional<nn::Logs> logs = look(evaluator, noted);
  REQUIRE(logs);
  CHECK((*logs)["loss"] == training.expected[5]);
  CHECK(noted.losses == Losses{{3, training.expected[3]}, {5, training.expected[5]}});
  dist::detail::remove_checkpoint(training.folder.path("ckpt-5"));
  CHECK_FALSE(look(evaluator, noted));  // "ckpt-4" is older than the last evaluated one
  manager.remove_all();
  CHECK_FALSE(look(evaluator, noted));
  manager.save();  // "ckpt-6", whose serial number is 1 again, like in a training that starts again in the folder
  REQUIRE(look(evaluator, noted));
  CHECK(evaluator.evaluated() == training.folder.path("ckpt-6"));
}

TEST_CASE("max_evaluations is the number of the last checkpoint, evaluated or skipped (spec Q27)") {
  Training training;
  nn::callbacks::ModelCheckpoint saves{training.folder.path("ckpt_{epoch}")};
  training.trained.model.fit(small::examples(), {.epochs = 3, .verbose = 0}, saves);
  const double expected = training.trained.model.evaluate(small::examples(12), silent)["loss"];

  small::Model model{7, 0.5F};  // with another optimizer
  Evaluator evaluator{model.model, training.folder.path(), {.max_evaluations = 3}};
  std::string shown;
  nn::EvaluateOptions evaluate{.verbose = 2};
  evaluate.console.write = [&](std::string_view piece) { shown += piece; };
  Noted noted;
  const std::optional<nn::Logs> logs = evaluator.run(small::examples(12), evaluate, noted);
  REQUIRE(logs);
  CHECK((*logs)["loss"] == expected);
  CHECK(noted.losses == Losses{{12, expected}});  // after three epochs of four batches
  CHECK(static_cast<double>(model.model.optimizer().learning_rate()) == 0.5);
  CHECK(shown.starts_with("Evaluating " + training.folder.path("ckpt_3") + "\n"));
  CHECK(shown.find(" - loss: ") != std::string::npos);
}

TEST_CASE("a checkpoint of network and optimizer is evaluated, one without iterations is rejected (spec Q27)") {
  Training training;
  training.step();
  dist::Checkpoint parts{training.trained.strategy};
  parts.add("network", training.trained.net).add("optimizer", training.trained.model.optimizer());
  parts.save(training.folder.path("parts"));
  small::Model model{7};
  Evaluator evaluator{model.model, training.folder.path()};
  Noted noted;
  REQUIRE(look(evaluator, noted));
  CHECK(noted.losses == training.expected);

  dist::Checkpoint network{training.trained.strategy};
  network.add("network", training.trained.net);
  network.save(training.folder.path("network"));
  CHECK(what_throws<dist::FileError>([&] { look(evaluator, noted); }) ==
        "File '" + training.folder.path("network") +
            "' is a checkpoint without the iterations of an optimizer (it holds 'network/dense/bias', "
            "'network/dense/kernel', 'network/dense_1/bias', 'network/dense_1/kernel'). Save the model as part "
            "\"model\", or its network and its optimizer as parts \"network\" and \"optimizer\".");

  using Wider = nn::Sequential<nn::Input<4>, nn::Dense<9, nn::Relu>, nn::Dense<3>>;
  nn::Network<Wider> wider{training.trained.strategy};
  dist::Checkpoint other{training.trained.strategy};
  other.add("network", wider).add("optimizer", training.trained.model.optimizer());
  other.save(training.folder.path("other"));
  CHECK_THROWS_AS(look(evaluator, noted), dist::ShapeMismatch);
}

TEST_CASE("an incomplete, damaged or deleted checkpoint is skipped until it is readable") {
  Training training;
  dist::CheckpointManager manager{training.checkpoint, training.folder.path()};
  for (int i = 0; i < 2; ++i) {
    training.step();
    manager.save();
  }
  training.folder.write("ckpt-3/data-0000000000000001-00000-of-00001.safetensors", "begun");  // without a manifest
  const std::string newest = training.data_of("ckpt-2");
  const std::string content = training.folder.read(newest);
  training.folder.write(newest, content.substr(0, content.size() / 2));

  small::Model model{7};
  Evaluator evaluator{model.model, training.folder.path()};
  Noted noted;
  REQUIRE(look(evaluator, noted));
  CHECK(evaluator.evaluated() == training.folder.path("ckpt-1"));
  CHECK(noted.losses == Losses{{1, training.expected[1]}});
  std::string flipped = content;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  training.folder.write(newest, flipped);
  CHECK_FALSE(look(evaluator, noted));
  REQUIRE(unlink(training.folder.path(newest).c_str()) == 0);
  CHECK_FALSE(look(evaluator, noted));
  training.folder.write(newest, content);
  REQUIRE(look(evaluator, noted));
  CHECK(noted.losses == training.expected);

  // A file instead of a folder.
  Evaluator elsewhere{model.model, training.folder.path(newest)};
  CHECK_THROWS_AS(look(elsewhere, noted), dist::FileError);
}

TEST_CASE("the evaluator ends with the training, after the last checkpoint; the end of a shorter training is ignored") {
  Training training;
  training.step();
  training.checkpoint.save(training.folder.path("first"));
  dist::mark_training_ended(training.folder.path(), 4);
  small::Model model{7};
  Noted noted;
  const auto run = [&](Evaluator&& evaluator) { return evaluator.run(small::examples(12), silent, noted); };
  REQUIRE(run(Evaluator{model.model, training.folder.path(), {.poll = milliseconds{1}}}));
  REQUIRE(run(Evaluator{model.model, training.folder.path(), {.epochs = 4, .poll = milliseconds{1}}}));
  CHECK(noted.losses == training.expected);
  CHECK_THROWS_AS(
      run(Evaluator{
          model.model, training.folder.path(), {.epochs = 5, .timeout = milliseconds{20}, .poll = milliseconds{1}}}),
      dist::DeadlineExceeded);
  // It does not wait if there are only unreadable checkpoints, or none.
  REQUIRE(unlink(training.folder.path(training.data_of("first")).c_str()) == 0);
  CHECK_FALSE(run(Evaluator{model.model, training.folder.path(), {.poll = milliseconds{1}}}));
  dist::detail::remove_checkpoint(training.folder.path("first"));
  CHECK_FALSE(run(Evaluator{model.model, training.folder.path(), {.poll = milliseconds{1}}}));
}

TEST_CASE("the evaluator reports the awaited and the skipped checkpoints, and has a deadline") {
  const support::TemporaryFolder folder;
  const auto ending = testing::stderr_of([&] {
    small::Model model;
    dist::Checkpoint checkpoint{model.strategy};
    checkpoint.add("model", model.model).save(folder.path("damaged"));
    for (const std::string& file : folder.names("damaged"))
      if (file.starts_with("data-")) folder.write("damaged/" + file, "damaged");
    Evaluator evaluator{model.model,
                        folder.path(),
                        {.timeout = milliseconds{300}, .poll = milliseconds{5}, .tell_after = milliseconds{0}}};
    dist::log_line(what_throws<dist::DeadlineExceeded>([&] { evaluator.run(small::examples(12)); }));
  });
  CAPTURE(ending.stderr_text);
  CHECK(ending.says("dist: the evaluator has waited 0 s for a checkpoint in '" + folder.path() + "'\n"));
  CHECK(ending.says(
      "The evaluator waited too long for a checkpoint in '" + folder.path() +
      "' (none was saved in 0.3 s, and the training is not marked as ended). Check that the training runs and saves "
      "there, increase SidecarEvaluatorOptions.timeout, or call dist::mark_training_ended when the training ends."));
  const std::string left_out = "dist: checkpoint " + folder.path("damaged") + " is skipped: ";
  CHECK(ending.says(left_out));
  CHECK(ending.stderr_text.find(left_out) == ending.stderr_text.rfind(left_out));  // once
  const auto in_time = testing::stderr_of([&] {
    small::Model model;
    Evaluator evaluator{model.model, folder.path("none"), {.timeout = milliseconds{20}, .poll = milliseconds{5}}};
    dist::log_line(what_throws<dist::DeadlineExceeded>([&] { evaluator.run(small::examples(12)); }));
  });
  CHECK(in_time.stderr_text.starts_with("dist: The evaluator waited too long for "));  // before 30 s have passed
  small::Model model;
  CHECK_THROWS_AS((Evaluator{model.model, "x", {.max_evaluations = 0}}), dist::InvalidArgument);
  CHECK_THROWS_AS((Evaluator{model.model, "x", {.poll = milliseconds{0}}}), dist::InvalidArgument);
}

TEST_CASE("checkpoints may be removed while the evaluator reads them") {
  Training training;
  constexpr std::int64_t steps = 60;
  std::atomic<bool> has_evaluated{false};
  std::thread training_thread{[&] {
    dist::CheckpointManager manager{training.checkpoint, training.folder.path(), {.max_to_keep = 1}};
    for (std::int64_t i = 0; i < steps; ++i) {
      training.step();
      manager.save();
      if (i == 0) has_evaluated.wait(false);  // otherwise all might end before the evaluator's first check
    }
    dist::mark_training_ended(training.folder.path());
  }};
  small::Model model{7};
  Noted noted;
  Evaluator evaluator{
      model.model, training.folder.path(), {.timeout = std::chrono::minutes{2}, .poll = milliseconds{1}}};
  const std::optional<nn::Logs> last = evaluator.run(small::examples(12), silent, noted,
                                                     nn::callbacks::lambda<nn::hooks::on_test_end>([&](const auto&...) {
                                                       has_evaluated = true;
                                                       has_evaluated.notify_all();
                                                     }));
  training_thread.join();
  REQUIRE(last);
  CHECK((*last)["loss"] == training.expected[steps]);
  CHECK(noted.losses.size() > 1);
  CHECK(noted.losses.begin()->first == 1);
  for (const auto& [step, loss] : noted.losses) CHECK(loss == training.expected.at(step));
}
