#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/text.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn {

/// The output and the clock of a progress bar.
struct Console {
  /// Writes a piece of text.
  std::function<void(std::string_view)> write;
  /// True if the output can be overwritten: a terminal, not a file.
  bool terminal = false;
  /// Returns seconds since a fixed time.
  std::function<double()> clock;

  /// Writes to `file`, which must stay open, and flushes after each write.
  [[nodiscard]] static Console to(std::FILE* file);
  /// The standard output of the process.
  [[nodiscard]] static Console standard_output() { return to(stdout); }

 private:
  /// Returns false for a terminal without a width: a launcher reads it, and forwards it line by line.
  [[nodiscard]] static bool is_screen(int descriptor);
};

/// The amount of output.
enum class Verbosity { silent = 0, bar = 1, line_per_epoch = 2 };

/// Converts Keras' verbosity 0, 1 or 2. Throws InvalidArgument for other numbers.
[[nodiscard]] Verbosity verbosity(int verbose);

/// The options of ProgressBar.
struct ProgressBarOptions {
  /// The total number of steps; empty if unknown.
  std::optional<std::size_t> target = std::nullopt;
  /// Default: a bar.
  Verbosity verbosity = Verbosity::bar;
  /// Names whose values belong to the last step, and are averaged over the steps; other values are shown as given.
  std::vector<std::string> averaged = {};
};

/// The progress bar of Keras 2, identical to the character (spec Q.1):
///
///     3/12 [======>.......................] - ETA: 2s - loss: 0.6931 - accuracy: 0.5000
///
/// Time starts with the construction. On a terminal the line is overwritten, at most every 0.05 s; elsewhere only the
/// final state is written, so that a file has one line per epoch.
class ProgressBar {
 public:
  /// The number of characters of the bar.
  static constexpr std::size_t width = 30;
  /// The minimum time between two updates of the bar, in seconds.
  static constexpr double interval = 0.05;

  /// Starts the time of the bar.
  ProgressBar(ProgressBarOptions options, Console console)
      : options_(std::move(options)), console_(std::move(console)), start_(console_.clock()) {}

  /// True if an `update` now would be shown or timed. Otherwise the values need not be computed, unless they are
  /// averaged.
  [[nodiscard]] bool due() const;

  /// Reports that `current` steps are done, with these values.
  void update(std::size_t current, const Logs& logs);

  /// Ends the bar after `current` steps: writes the final state and a line break.
  void finish(std::size_t current, const Logs& logs);

 private:
  struct Shown {
    std::string name;
    double sum;
    double weight;
  };

  void record(std::size_t current, const Logs& logs);

  /// Excludes the first step, which allocates and warms caches, as soon as there are others.
  double seconds_per_step(std::size_t current, double now);

  void draw(std::size_t current, double now, double step_time, bool last);

  void write_line(std::size_t current, double now);

  void append_count(std::size_t current);

  void append_bar(std::size_t current);

  void append_eta(double seconds);

  void append_duration(double seconds, const char* unit);

  void append_values();

  template <class... Numbers>
  void append(const char* format, Numbers... numbers) {
    char buffer[400];  // more than the longest double in %f
    const int length = std::snprintf(buffer, sizeof buffer, format, numbers...);
    line_.append(buffer, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof buffer) - 1)));
  }

  ProgressBarOptions options_;
  Console console_;
  double start_;
  std::optional<double> last_update_;
  std::optional<double> after_first_step_;
  std::vector<Shown> shown_;
  std::size_t seen_ = 0;
  std::size_t drawn_ = 0;  // characters of the current line on the terminal
  std::string line_;
};

/// Shows a fit, an evaluation or a prediction: a progress bar per epoch, with a header if there are several epochs.
class ProgressCallback {
 public:
  /// Writes to `console`.
  ProgressCallback(Verbosity verbosity, Console console);
  /// Moves the bar that is shown.
  ProgressCallback(ProgressCallback&&) noexcept;
  ~ProgressCallback();

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

#ifndef DIST_COMPILED
#include <dist/train/progress_bar.ipp>
#endif
