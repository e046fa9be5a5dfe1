#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include <dist/core/text.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/console.hpp>
#include <dist/train/progress_bar.hpp>

namespace dist::nn {

/// Shows a fit, an evaluation or a prediction: a header when there are several epochs, and a progress bar for each.
class ProgressCallback {
 public:
  ProgressCallback(Verbosity verbosity, Console console) : verbosity_(verbosity), console_(std::move(console)) {}

  void on_epoch_begin(const Epoch& epoch) {
    begin(epoch.steps);
    if (verbosity_ != Verbosity::silent && epoch.epochs > 1)
      console_.write(concat("Epoch ", epoch.index + 1, "/", epoch.epochs, "\n"));
  }
  void on_train_batch_end(std::size_t step, CurrentLogs logs) { show(step, logs); }
  void on_epoch_end(const Epoch& epoch, const Logs& logs) { bar_->finish(*epoch.steps, logs); }

  void on_test_begin(std::optional<std::size_t> steps) { begin(steps); }
  void on_test_batch_end(std::size_t step, CurrentLogs logs) { show(step, logs); }
  void on_test_end(std::size_t steps, const Logs& logs) { bar_->finish(steps, logs); }

  void on_predict_begin(std::optional<std::size_t> steps) { begin(steps); }
  void on_predict_batch_end(std::size_t step) {
    if (bar_->due()) bar_->update(step + 1, Logs{});
  }
  void on_predict_end(std::size_t steps) { bar_->finish(steps, Logs{}); }

 private:
  void show(std::size_t step, const CurrentLogs& logs) {
    if (bar_->due()) bar_->update(step + 1, logs());
  }
  void begin(std::optional<std::size_t> steps) {
    bar_.emplace(ProgressBarOptions{.target = steps, .verbosity = verbosity_}, console_);
  }

  Verbosity verbosity_;
  Console console_;
  std::optional<ProgressBar> bar_;
};

}  // namespace dist::nn
