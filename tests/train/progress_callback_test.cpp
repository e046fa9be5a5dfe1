#include <dist/train/progress_callback.hpp>

#include <string>

#include <doctest/doctest.h>

#include "terminal.hpp"

namespace nn = dist::nn;

namespace {

nn::CurrentLogs reading(nn::Logs& logs) {
  return {&logs, [](void* source) -> const nn::Logs& { return *static_cast<nn::Logs*>(source); }};
}

std::string joined(const Terminal& kept) {
  std::string all;
  for (const std::string& message : *kept.messages) all += message;
  return all;
}

}  // namespace

TEST_CASE("a header for each of several epochs, then the bar (spec Q.1)") {
  const Terminal kept;
  nn::ProgressCallback progress{nn::Verbosity::bar, kept.console(false)};
  nn::Logs logs;
  logs.set("loss", 0.5);
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    progress.on_epoch_begin(
        {.index = epoch, .epochs = 2, .steps = epoch == 0 ? std::nullopt : std::optional<std::size_t>{2}});
    for (std::size_t step = 0; step < 2; ++step) {
      *kept.now += 1;
      progress.on_train_batch_end(step, reading(logs));
    }
    progress.on_epoch_end({.index = epoch, .epochs = 2, .steps = 2}, logs);
  }
  CHECK(joined(kept) ==
        "Epoch 1/2\n2/2 [==============================] - 2s 1s/step - loss: 0.5000\n"
        "Epoch 2/2\n2/2 [==============================] - 2s 1s/step - loss: 0.5000\n");
}

TEST_CASE("no header for one epoch, nothing at all in silence") {
  for (const auto verbosity : {nn::Verbosity::line_per_epoch, nn::Verbosity::silent}) {
    const Terminal kept;
    nn::ProgressCallback progress{verbosity, kept.console()};
    nn::Logs logs;
    logs.set("loss", 0.5);
    progress.on_epoch_begin({.steps = 1});
    *kept.now += 1;
    progress.on_train_batch_end(0, reading(logs));
    progress.on_epoch_end({.steps = 1}, logs);
    CHECK(joined(kept) == (verbosity == nn::Verbosity::silent ? "" : "1/1 - 1s - loss: 0.5000 - 1s/epoch - 1s/step\n"));
  }
}

TEST_CASE("an evaluation has a bar and no header") {
  const Terminal kept;
  nn::ProgressCallback progress{nn::Verbosity::bar, kept.console()};
  nn::Logs logs;
  logs.set("loss", 0.25);
  progress.on_test_begin(2);
  *kept.now += 1;
  progress.on_test_batch_end(0, reading(logs));
  *kept.now += 1;
  progress.on_test_end(2, logs);
  REQUIRE(kept.messages->size() == 2);
  CHECK((*kept.messages)[0] == "\r1/2 [==============>...............] - ETA: 1s - loss: 0.2500");
  CHECK((*kept.messages)[1] ==
        std::string(61, '\b') + "\r2/2 [==============================] - 2s 1s/step - loss: 0.2500\n");
}
