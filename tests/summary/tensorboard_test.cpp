// Tests that the package tensorboard reads our files.
#include <cstdint>
#include <string>
#include <string_view>

#include <dist/summary/writer.hpp>
#include <dist/train/callbacks/tensor_board.hpp>

#include <doctest/doctest.h>

#include <support/python.hpp>
#include <support/temporary_folder.hpp>
#include <train/callbacks/small_model.hpp>

namespace {

const testing::NeedsPython needs_tensorboard{"tensorboard.backend.event_processing.event_accumulator"};

/// A user's callback, which writes values for TensorBoard in addition to the logs.
struct Shows {
  dist::nn::callbacks::TensorBoard& board;

  void on_train_begin(auto& model) {
    const dist::summary::Hyperparameter values[] = {{"rate", 0.01}, {"optimizer", "adam"}};
    board.writer(model).session_start(values);
  }
  void on_epoch_end(auto& model, const dist::nn::Epoch& epoch, const dist::nn::Logs&) {
    const auto step = static_cast<std::int64_t>(epoch.index);
    board.writer(model, "train").image("examples", {3, 2, "\x89PNG\r\n\x1a\n"}, step);
    board.writer(model, "train").text("note", "hi", step);
  }
  void on_train_end(auto& model, const dist::nn::Logs&) {
    board.writer(model).session_end(dist::summary::Outcome::success);
  }
};

}  // namespace

TEST_CASE("tensorboard reads tags, steps and values as written") {
  using namespace dist::summary;
  const support::TemporaryFolder folder;
  {
    Writer writer{folder.path()};
    for (int step = 0; step < 12; ++step) writer.scalar("epoch_loss", 1.0 / (1 << step), 5 * step);
    const float weights[] = {0, 0.5F, 1, 1, 2, 4};
    writer.histogram("weights", std::span{weights}, 7, 4);
    const std::string png = "\x89PNG\r\n\x1a\n";
    writer.image("image", {3, 2, png}, 8);
    writer.text("note", "Größe", 9);
    const HyperparameterRange varied[] = {{.name = "rate", .interval = {{0.125, 0.5}}},
                                          {.name = "optimizer", .choices = {"adam", "sgd"}}};
    const Metric metrics[] = {{"epoch_accuracy", "validation"}, {"epoch_loss"}};
    writer.experiment(varied, metrics);
    const Hyperparameter values[] = {{"rate", 0.25}, {"flip", true}, {"optimizer", "adam"}};
    writer.session_start(values);
    writer.session_end(Outcome::success);
    const Node nodes[] = {{.name = "x", .op = "Placeholder", .shape = {-1, 4}},
                          {.name = "block/dense", .op = "Dense", .inputs = {"x"}, .attributes = {{"units", "10"}}}};
    writer.graph(nodes);
  }
  std::string expected =
      "version 2.0\n"
      "experiment rate 3 0.125 0.5\n"
      "experiment optimizer 1 adam sgd\n"
      "metric validation epoch_accuracy\n"
      "metric - epoch_loss\n"
      "end 1\n"
      "session flip True\n"
      "session optimizer adam\n"
      "session rate 0.25\n"
      "group flip=true, optimizer=adam, rate=0.25 True\n";
  for (const std::string_view line :
       {"0 True float32 [] 1.0", "5 True float32 [] 0.5", "10 True float32 [] 0.25", "15 True float32 [] 0.125",
        "20 True float32 [] 0.0625", "25 True float32 [] 0.03125", "30 True float32 [] 0.015625",
        "35 True float32 [] 0.0078125", "40 True float32 [] 0.00390625", "45 True float32 [] 0.001953125",
        "50 True float32 [] 0.0009765625", "55 True float32 [] 0.00048828125"})
    expected.append("scalars epoch_loss ").append(line).append("\n");
  expected +=
      "images image 8 True object [3] 33 32 89504e470d0a1a0a\n"
      "text note 9 True object [] 4772c3b6c39f65\n"
      "histograms weights 7 True float64 [4, 3] 0.0 1.0 2.0 1.0 2.0 2.0 2.0 3.0 1.0 3.0 4.0 1.0\n"
      "node x Placeholder\n"
      "node block/dense Dense x\n";
  CHECK(testing::python_output("summary/read_events.py", folder.path()) == expected);

  // tensorboard's functions make equal messages, except for images, which they leave to TensorFlow.
  std::string tags;
  for (int step = 0; step < 12; ++step) tags += "epoch_loss\n";
  CHECK(testing::python_output("summary/compare_events.py", folder.path()) ==
        tags + "weights\nnote\n_hparams_/experiment\n_hparams_/session_start_info\n");
}

TEST_CASE("tensorboard reads the hyperparameters, images and texts of a callback in a fit") {
  const support::TemporaryFolder folder;
  small::Model trained;
  {
    dist::nn::callbacks::TensorBoard board{folder.path(), {.write_graph = false}};
    Shows shows{board};
    trained.model.fit(small::examples(), {.epochs = 2, .verbose = 0}, board, shows);
  }
  CHECK(testing::python_output("summary/read_events.py", folder.path()) ==
        "version 2.0\n"
        "end 1\n"
        "session optimizer adam\n"
        "session rate 0.01\n"
        "group optimizer=adam, rate=0.01 True\n");
  const std::string train = testing::python_output("summary/read_events.py", folder.path("train"));
  CHECK(train.find("images examples 0 True object [3] 33 32 89504e470d0a1a0a\n"
                   "images examples 1 True object [3] 33 32 89504e470d0a1a0a\n"
                   "text note 0 True object [] 6869\n"
                   "text note 1 True object [] 6869\n") != std::string::npos);
  CHECK(train.find("scalars epoch_loss 1 ") != std::string::npos);
}
