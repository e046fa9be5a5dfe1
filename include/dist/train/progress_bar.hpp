#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/train/console.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn {

/// How much is shown.
enum class Verbosity { silent = 0, bar = 1, line_per_epoch = 2 };

/// The verbosity that Keras calls 0, 1 or 2. Throws InvalidArgument for another number.
[[nodiscard]] inline Verbosity verbosity(int verbose) {
  if (verbose < 0 || verbose > 2)
    throw InvalidArgument("verbose is not a verbosity", concat("it is ", verbose),
                          "Use 0 for silence, 1 for a progress bar, 2 for one line per epoch");
  return static_cast<Verbosity>(verbose);
}

struct ProgressBarOptions {
  /// Steps to come; none while that is unknown.
  std::optional<std::size_t> target = std::nullopt;
  Verbosity verbosity = Verbosity::bar;
  /// Names whose value is that of the last step, and shown averaged over the steps; others are shown as
  /// given.
  std::vector<std::string> averaged = {};
};

/// The progress bar of Keras 2, character by character (spec Q.1):
///
///     3/12 [======>.......................] - ETA: 2s - loss: 0.6931 - accuracy: 0.5000
///
/// The time starts with the object. On a terminal the line is written over, at most every 0.05 s; elsewhere
/// only the last state is written, so that a file has one line per epoch.
class ProgressBar {
 public:
  static constexpr std::size_t width = 30;
  static constexpr double interval = 0.05;  // seconds

  ProgressBar(ProgressBarOptions options, Console console)
      : options_(std::move(options)), console_(std::move(console)), start_(console_.clock()) {}

  /// Whether an `update` now would be seen or timed; what is only shown as given need not be computed
  /// otherwise.
  [[nodiscard]] bool due() const {
    return options_.verbosity == Verbosity::bar &&
           (!last_update_ || (console_.terminal && console_.clock() - *last_update_ >= interval));
  }

  /// `current` steps are done, with these values.
  void update(std::size_t current, const Logs& logs) {
    record(current, logs);
    if (!due()) return;
    const double now = console_.clock();
    last_update_ = now;
    const double step_time = seconds_per_step(current, now);
    if (console_.terminal) draw(current, now, step_time, false);
  }

  /// Ends the bar after `current` steps: writes the last state and ends the line.
  void finish(std::size_t current, const Logs& logs) {
    record(current, logs);
    const double now = console_.clock();
    options_.target = options_.target.value_or(current);
    if (options_.verbosity == Verbosity::bar) draw(current, now, seconds_per_step(current, now), true);
    if (options_.verbosity == Verbosity::line_per_epoch) write_line(current, now);
  }

 private:
  struct Shown {
    std::string name;
    double sum;
    double weight;
  };

  void record(std::size_t current, const Logs& logs) {
    const double steps = current > seen_ ? static_cast<double>(current - seen_) : 1;
    for (const Logs::Entry& entry : logs) {
      auto shown =
          std::find_if(shown_.begin(), shown_.end(), [&](const Shown& each) { return each.name == entry.name; });
      if (shown == shown_.end()) shown = shown_.insert(shown_.end(), {entry.name, 0, 0});
      if (std::find(options_.averaged.begin(), options_.averaged.end(), entry.name) != options_.averaged.end()) {
        shown->sum += entry.value * steps;
        shown->weight += steps;
      } else {
        shown->sum = entry.value;
        shown->weight = 1;
      }
    }
    seen_ = current;
  }

  /// The first step, which allocates and warms caches, is left out as soon as there are others.
  double seconds_per_step(std::size_t current, double now) {
    if (current == 0) return 0;
    const double time = after_first_step_ && current > 1 ? (now - *after_first_step_) / static_cast<double>(current - 1)
                                                         : (now - start_) / static_cast<double>(current);
    if (current == 1) after_first_step_ = now;
    return time;
  }

  void draw(std::size_t current, double now, double step_time, bool last) {
    line_.clear();
    if (console_.terminal) line_.append(drawn_, '\b').push_back('\r');
    const std::size_t begin = line_.size();
    append_bar(current);
    if (!options_.target || last) {
      append(" - %.0fs", now - start_);
      append_duration(step_time, "step");
    } else {
      append_eta(step_time * (static_cast<double>(*options_.target) - static_cast<double>(current)));
    }
    append_values();
    const std::size_t drawn = line_.size() - begin;
    if (drawn < drawn_) line_.append(drawn_ - drawn, ' ');
    drawn_ = drawn;
    if (last) line_.push_back('\n');
    console_.write(line_);
  }

  void write_line(std::size_t current, double now) {
    line_.clear();
    append_count(current);
    append(" - %.0fs", now - start_);
    append_values();
    line_ += " -";
    append_duration(now - start_, "epoch");
    line_ += " -";
    append_duration((now - start_) / static_cast<double>(std::max<std::size_t>(*options_.target, 1)), "step");
    line_.push_back('\n');
    console_.write(line_);
  }

  void append_count(std::size_t current) {
    const std::string target = std::to_string(*options_.target);
    const std::string done = std::to_string(current);
    line_.append(target.size() - std::min(target.size(), done.size()), ' ').append(done).append("/").append(target);
  }

  void append_bar(std::size_t current) {
    if (!options_.target) {
      append("%7.0f/Unknown", static_cast<double>(current));
      return;
    }
    append_count(current);
    line_ += " [";
    const std::size_t target = std::max<std::size_t>(*options_.target, 1);
    const std::size_t done = std::min(width, width * current / target);
    if (done > 0) line_.append(done - 1, '=').push_back(current < target ? '>' : '=');
    line_.append(width - done, '.').push_back(']');
  }

  void append_eta(double seconds) {
    const auto whole = static_cast<unsigned long>(std::max(seconds, 0.0));
    if (seconds > 3600) {
      append(" - ETA: %lu:%02lu:%02lu", whole / 3600, whole % 3600 / 60, whole % 60);
    } else if (seconds > 60) {
      append(" - ETA: %lu:%02lu", whole / 60, whole % 60);
    } else {
      append(" - ETA: %lus", whole);
    }
  }

  void append_duration(double seconds, const char* unit) {
    if (seconds >= 1 || seconds == 0) {
      append(" %.0fs/%s", seconds, unit);
    } else if (seconds >= 1e-3) {
      append(" %.0fms/%s", seconds * 1e3, unit);
    } else {
      append(" %.0fus/%s", seconds * 1e6, unit);
    }
  }

  void append_values() {
    for (const Shown& each : shown_) {
      const double value = each.sum / std::max(each.weight, 1.0);
      line_.append(" - ").append(each.name).append(":");
      if (std::isnan(value)) {
        line_ += " nan";  // printf may show its sign
      } else {
        append(std::abs(value) > 1e-3 ? " %.4f" : " %.4e", value);
      }
    }
  }

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
  std::size_t drawn_ = 0;  // characters of the line that is on the terminal
  std::string line_;
};

}  // namespace dist::nn
