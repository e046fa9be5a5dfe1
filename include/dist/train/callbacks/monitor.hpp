#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/say.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks {

/// Whether less or more of what is monitored is better. `automatic` takes more for what has "acc" or "auc" in its name, or
/// begins with "fmeasure", and less for all else.
enum class Mode { automatic, min, max };

/// A value in the logs, and the best one so far.
class Monitor {
 public:
  /// A change of at most `min_delta` is none. `who` is the callback, for what is said of it.
  Monitor(std::string name, Mode mode, double min_delta, std::string_view who)
      : name_(std::move(name)), who_(who), min_delta_(std::abs(min_delta)) {
    const auto has = [&](std::string_view part) { return name_.find(part) != std::string::npos; };
    more_is_better_ =
        mode == Mode::max || (mode == Mode::automatic && (has("acc") || has("auc") || name_.starts_with("fmeasure")));
    forget();
  }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] double best() const noexcept { return best_; }
  /// Nothing was seen so far.
  void forget() noexcept {
    best_ = more_is_better_ ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }

  /// The value in the logs; nullptr if there is none, which is said once.
  [[nodiscard]] const double* find(const Logs& logs) {
    const double* const value = logs.find(name_);
    if (value == nullptr && !said_) {
      said_ = true;
      say(text(who_, " monitors '", name_, "', which the logs have not: they have ", logs.names()));
    }
    return value;
  }
  [[nodiscard]] bool is_better(double value, double reference) const noexcept {
    return more_is_better_ ? value - min_delta_ > reference : value + min_delta_ < reference;
  }
  /// Whether `value` is better than the best so far, which it becomes.
  bool improve(double value) noexcept {
    const bool better = is_better(value, best_);
    if (better) best_ = value;
    return better;
  }

 private:
  std::string name_;
  std::string_view who_;
  double min_delta_;
  bool more_is_better_ = false;
  double best_ = 0;
  bool said_ = false;
};

}  // namespace dist::nn::callbacks
