#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/train/progress_bar.hpp>

namespace dist::nn {

DIST_INLINE Console Console::to(std::FILE* file) {
  return {
      .write =
          [file](std::string_view message) {
            std::fwrite(message.data(), 1, message.size(), file);
            std::fflush(file);
          },
      .terminal = is_screen(fileno(file)),
      .clock =
          [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }};
}

DIST_INLINE bool Console::is_screen(int descriptor) {
  winsize size{};
  return isatty(descriptor) == 1 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
}

DIST_INLINE Verbosity verbosity(int verbose) {
  if (verbose < 0 || verbose > 2)
    throw InvalidArgument("verbose is out of range", concat("it is ", verbose),
                          "Use 0 for silence, 1 for a progress bar, 2 for one line per epoch");
  return static_cast<Verbosity>(verbose);
}

DIST_INLINE bool ProgressBar::due() const {
  return options_.verbosity == Verbosity::bar &&
         (!last_update_ || (console_.terminal && console_.clock() - *last_update_ >= interval));
}

DIST_INLINE void ProgressBar::update(std::size_t current, const Logs& logs) {
  record(current, logs);
  if (!due()) return;
  const double now = console_.clock();
  last_update_ = now;
  const double step_time = seconds_per_step(current, now);
  if (console_.terminal) draw(current, now, step_time, false);
}

DIST_INLINE void ProgressBar::finish(std::size_t current, const Logs& logs) {
  record(current, logs);
  const double now = console_.clock();
  options_.target = options_.target.value_or(current);
  if (options_.verbosity == Verbosity::bar) draw(current, now, seconds_per_step(current, now), true);
  if (options_.verbosity == Verbosity::line_per_epoch) write_line(current, now);
}

DIST_INLINE void ProgressBar::record(std::size_t current, const Logs& logs) {
  const double steps = current > seen_ ? static_cast<double>(current - seen_) : 1;
  for (const Logs::Entry& entry : logs) {
    auto shown = std::find_if(shown_.begin(), shown_.end(), [&](const Shown& each) { return each.name == entry.name; });
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

DIST_INLINE double ProgressBar::seconds_per_step(std::size_t current, double now) {
  if (current == 0) return 0;
  const double time = after_first_step_ && current > 1 ? (now - *after_first_step_) / static_cast<double>(current - 1)
                                                       : (now - start_) / static_cast<double>(current);
  if (current == 1) after_first_step_ = now;
  return time;
}

DIST_INLINE void ProgressBar::draw(std::size_t current, double now, double step_time, bool last) {
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

DIST_INLINE void ProgressBar::write_line(std::size_t current, double now) {
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

DIST_INLINE void ProgressBar::append_count(std::size_t current) {
  const std::string target = std::to_string(*options_.target);
  const std::string done = std::to_string(current);
  line_.append(target.size() - std::min(target.size(), done.size()), ' ').append(done).append("/").append(target);
}

DIST_INLINE void ProgressBar::append_bar(std::size_t current) {
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

DIST_INLINE void ProgressBar::append_eta(double seconds) {
  const auto whole = static_cast<unsigned long>(std::max(seconds, 0.0));
  if (seconds > 3600) {
    append(" - ETA: %lu:%02lu:%02lu", whole / 3600, whole % 3600 / 60, whole % 60);
  } else if (seconds > 60) {
    append(" - ETA: %lu:%02lu", whole / 60, whole % 60);
  } else {
    append(" - ETA: %lus", whole);
  }
}

DIST_INLINE void ProgressBar::append_duration(double seconds, const char* unit) {
  if (seconds >= 1 || seconds == 0) {
    append(" %.0fs/%s", seconds, unit);
  } else if (seconds >= 1e-3) {
    append(" %.0fms/%s", seconds * 1e3, unit);
  } else {
    append(" %.0fus/%s", seconds * 1e6, unit);
  }
}

DIST_INLINE void ProgressBar::append_values() {
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

DIST_INLINE ProgressCallback::ProgressCallback(Verbosity verbosity, Console console)
    : verbosity_(verbosity), console_(std::move(console)) {}
DIST_INLINE_DEFAULT ProgressCallback::ProgressCallback(ProgressCallback&&) noexcept = default;
DIST_INLINE_DEFAULT ProgressCallback::~ProgressCallback() = default;

}  // namespace dist::nn
