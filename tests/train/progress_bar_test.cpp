// The expected lines are the output of tf_keras 2.21.0's Progbar for the same calls at the same (patched) times.
#include <dist/train/progress_bar.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "terminal.hpp"

namespace nn = dist::nn;

namespace {

struct Call {
  double at;  // seconds after the start
  std::size_t step;
  std::vector<nn::Logs::Entry> values;
};
struct Line {
  int backspaces;
  std::string text;
};

/// Makes the calls, the last one as `finish`, and compares the output.
void compare(const nn::ProgressBarOptions& options, const std::vector<Call>& calls, const std::vector<Line>& lines,
             bool terminal = true) {
  const Terminal kept;
  nn::ProgressBar bar{options, kept.console(terminal)};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    *kept.now = 100.0 + calls[i].at;
    nn::Logs logs;
    for (const auto& value : calls[i].values) logs.set(value.name, value.value);
    if (i + 1 == calls.size()) {
      bar.finish(calls[i].step, logs);
    } else {
      bar.update(calls[i].step, logs);
    }
  }
  REQUIRE(kept.messages->size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i)
    CHECK((*kept.messages)[i] == std::string(static_cast<std::size_t>(lines[i].backspaces), '\b') + lines[i].text);
}

std::vector<nn::Logs::Entry> logs(double loss, double accuracy) { return {{"loss", loss}, {"accuracy", accuracy}}; }

}  // namespace

TEST_CASE("a known number of steps is drawn at most every 0.05 s (spec Q.1)") {
  compare({.target = 12},
          {{0.5, 1, logs(2.30259, 0.125)},
           {0.52, 2, logs(2.2, 0.2)},
           {0.75, 3, logs(0.6931, 0.5)},
           {1.6, 12, logs(0.00051234, 0.96875)}},
          {{0, "\r 1/12 [=>............................] - ETA: 5s - loss: 2.3026 - accuracy: 0.1250"},
           {82, "\r 3/12 [======>.......................] - ETA: 1s - loss: 0.6931 - accuracy: 0.5000"},
           {82, "\r12/12 [==============================] - 2s 100ms/step - loss: 5.1234e-04 - accuracy: 0.9688\n"}});
}

TEST_CASE("an unknown number of steps is shown as Unknown (spec Q05)") {
  compare({}, {{2, 1, logs(1.5, 0.25)}, {3, 3, logs(1.25, 0.5)}, {4, 5, logs(1, 0.75)}},
          {{0, "\r      1/Unknown - 2s 2s/step - loss: 1.5000 - accuracy: 0.2500"},
           {62, "\r      3/Unknown - 3s 500ms/step - loss: 1.2500 - accuracy: 0.5000"},
           {65, "\r5/5 [==============================] - 4s 500ms/step - loss: 1.0000 - accuracy: 0.7500\n"}});
}

TEST_CASE("hours, minutes and seconds; shrinking lines; small, negative and missing numbers") {
  compare({.target = 1000},
          {{10, 1, logs(1, 0)},
           {20, 2, logs(1, 0)},
           {120, 102, logs(-0.5, 0)},
           {130, 980, logs(1e-3, 0)},
           {131, 1000, logs(1, std::nan(""))}},
          {{0, "\r   1/1000 [..............................] - ETA: 2:46:30 - loss: 1.0000 - accuracy: 0.0000e+00"},
           {95, "\r   2/1000 [..............................] - ETA: 2:46:20 - loss: 1.0000 - accuracy: 0.0000e+00"},
           {95, "\r 102/1000 [==>...........................] - ETA: 16:18 - loss: -0.5000 - accuracy: 0.0000e+00 "},
           {94, "\r 980/1000 [============================>.] - ETA: 2s - loss: 1.0000e-03 - accuracy: 0.0000e+00"},
           {94,
            "\r1000/1000 [==============================] - 131s 121ms/step - loss: 1.0000 - accuracy: nan   "
            "\n"}});
}

TEST_CASE("values of single steps are averaged over the steps") {
  compare({.target = 4, .averaged = {"loss"}}, {{1, 1, {{"loss", 4}}}, {2, 3, {{"loss", 1}}}, {3, 4, {{"loss", 2}}}},
          {{0, "\r1/4 [======>.......................] - ETA: 3s - loss: 4.0000"},
           {61, "\r3/4 [=====================>........] - ETA: 0s - loss: 2.0000"},
           {61, "\r4/4 [==============================] - 3s 667ms/step - loss: 2.0000\n"}});
}

TEST_CASE("a single step, and steps of microseconds") {
  compare({.target = 1}, {{0.25, 1, logs(1, 0)}, {0.25, 1, logs(1, 0)}},
          {{0, "\r1/1 [==============================] - ETA: 0s - loss: 1.0000 - accuracy: 0.0000e+00"},
           {84, "\r1/1 [==============================] - 0s 250ms/step - loss: 1.0000 - accuracy: 0.0000e+00\n"}});
  compare({.target = 8}, {{0.0001, 1, logs(1, 0)}, {0.0009, 8, logs(1, 0)}},
          {{0, "\r1/8 [==>...........................] - ETA: 0s - loss: 1.0000 - accuracy: 0.0000e+00"},
           {84, "\r8/8 [==============================] - 0s 114us/step - loss: 1.0000 - accuracy: 0.0000e+00\n"}});
}

TEST_CASE("values of any magnitude") {
  compare({.target = 2}, {{0.1, 1, {{"loss", -123456}}}, {4000, 2, {{"loss", 0.5}}}},
          {{0, "\r1/2 [==============>...............] - ETA: 0s - loss: -123456.0000"},
           {67, "\r2/2 [==============================] - 4000s 4000s/step - loss: 0.5000\n"}});
}

TEST_CASE("verbosity 2 prints one line per epoch (spec Q.1)") {
  compare({.target = 469, .verbosity = nn::Verbosity::line_per_epoch},
          {{3.2, 1, logs(1, 0)}, {14.07, 469, logs(0.34567, 0.9)}},
          {{0, "469/469 - 14s - loss: 0.3457 - accuracy: 0.9000 - 14s/epoch - 30ms/step\n"}});
}

TEST_CASE("a file has only the final state, and silent prints nothing") {
  const std::vector<Call> calls{{0.5, 1, logs(2, 0.5)}, {1.5, 11, logs(1, 0.75)}, {1.6, 12, logs(1, 0.75)}};
  compare({.target = 12}, calls,
          {{0, "12/12 [==============================] - 2s 100ms/step - loss: 1.0000 - accuracy: 0.7500\n"}}, false);
  compare({.target = 12, .verbosity = nn::Verbosity::silent}, calls, {});
}

TEST_CASE("due is true if an update would be shown or timed") {
  const Terminal kept;
  nn::ProgressBar bar{{.target = 10}, kept.console()};
  CHECK(bar.due());
  bar.update(1, {});
  CHECK(!bar.due());
  *kept.now += 0.06;
  CHECK(bar.due());

  nn::ProgressBar in_file{{.target = 10}, kept.console(false)};
  CHECK(in_file.due());  // the first step is timed
  in_file.update(1, {});
  *kept.now += 1;
  CHECK(!in_file.due());
  CHECK(!nn::ProgressBar({.verbosity = nn::Verbosity::silent}, kept.console()).due());
}

TEST_CASE("verbosities match Keras (spec Q16)") {
  CHECK(nn::verbosity(0) == nn::Verbosity::silent);
  CHECK(nn::verbosity(1) == nn::Verbosity::bar);
  CHECK(nn::verbosity(2) == nn::Verbosity::line_per_epoch);
  CHECK_THROWS_AS(static_cast<void>(nn::verbosity(3)), dist::InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(nn::verbosity(-1)), dist::InvalidArgument);
}

TEST_CASE("output to a file is flushed at once, and a file is not a terminal") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const auto console = dist::nn::Console::to(file);
  CHECK(!console.terminal);
  console.write("12/12");
  console.write(" done\n");
  const int descriptor = fileno(file);
  char buffer[32] = {};
  CHECK(pread(descriptor, buffer, sizeof buffer, 0) == 11);
  CHECK(std::string(buffer) == "12/12 done\n");
  std::fclose(file);
}

TEST_CASE("the clock advances, in seconds") {
  const auto console = dist::nn::Console::standard_output();
  const double before = console.clock();
  usleep(2000);
  const double passed = console.clock() - before;
  CHECK(passed >= 0.002);
  CHECK(passed < 60);
}

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

TEST_CASE("several epochs have a header each, then the bar (spec Q.1)") {
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

TEST_CASE("a single epoch has no header, and silent prints nothing") {
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

TEST_CASE("an evaluation has a bar, but no header") {
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
