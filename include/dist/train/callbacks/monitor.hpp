#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::callbacks {

/// The direction in which the monitored value improves. `automatic` uses `static constexpr bool more_is_better` of the
/// metric's type. For the loss, and for values that a callback adds to the logs, less is better.
enum class Mode { automatic, min, max };

/// A value in the logs, and its best value.
class Monitor {
 public:
  /// An improvement is a change of more than `min_delta`. The last argument names the callback in messages.
  Monitor(std::string name, Mode mode, double min_delta, std::string_view who)
      : name_(std::move(name)), who_(who), mode_(mode), min_delta_(std::abs(min_delta)) {}

  /// The name of the value in the logs.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// The best value of the current fit.
  [[nodiscard]] double best() const noexcept { return best_; }
  /// Begins a fit. Throws InvalidArgument if neither the model nor a callback can log the value, or if the mode is
  /// automatic and the metric's type does not declare the better direction.
  void begin(const ModelView& model) {
    more_is_better_ = mode_ == Mode::max;
    const std::string_view of_validation = "val_";
    const std::string_view metric = std::string_view{name_}.substr(is_of_validation() ? of_validation.size() : 0);
    const std::optional<Better> better = model.better(metric);
    const bool is_logged = better && (!is_of_validation() || model.validates());
    if (!is_logged && !model.callbacks_may_log(name_)) refuse_name(better.has_value(), model.metric_names());
    if (mode_ == Mode::automatic) {
      if (better == Better::unsaid)
        throw InvalidArgument(
            concat(who_, " cannot determine whether higher or lower values of '", name_, "' are better"),
            "the type of that metric does not define it",
            "Set the mode, as in .mode = nn::callbacks::Mode::max, or give the metric a static constexpr "
            "bool more_is_better");
      more_is_better_ = better == Better::more;
    }
    guesses_ = mode_ == Mode::automatic && !better;
    best_ = more_is_better_ ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }

  /// Returns the value in the logs of an epoch, or nullptr. Reports the first unexpected absence.
  [[nodiscard]] const double* find(const ModelView& model, const Logs& logs) {
    const double* const value = logs.find(name_);
    if (value == nullptr) {
      const bool comes_later = is_of_validation() && model.validates() && !has_validation(logs);
      if (!comes_later && !std::exchange(reports_absence_, true))
        log_line(concat(who_, " monitors '", name_, "', which is not in the logs: they have ", logs.names()));
    } else if (std::exchange(guesses_, false) && model.is_chief()) {
      log_line(concat(who_, " assumes that lower values of '", name_,
                      "' are better: the model has no metric of that name. Set the mode if higher values are better"));
    }
    return value;
  }
  /// True if `value` is better than `reference` by more than the minimum change.
  [[nodiscard]] bool is_better(double value, double reference) const noexcept {
    return more_is_better_ ? value - min_delta_ > reference : value + min_delta_ < reference;
  }
  /// Returns true if `value` is better than the previous best, and stores it then.
  bool improve(double value) noexcept {
    const bool better = is_better(value, best_);
    if (better) best_ = value;
    return better;
  }
  /// True if the value is measured in validations.
  [[nodiscard]] bool is_of_validation() const noexcept { return name_.starts_with("val_"); }

  /// See Trackable.
  void track(auto& visit) { visit("best", best_); }

 private:
  [[noreturn]] void refuse_name(bool is_metric, const std::string& metrics) const {
    if (is_metric)
      throw InvalidArgument(concat(who_, " monitors '", name_, "'"), "the fit has no validation data",
                            "Set .validation in the options of fit, or monitor a value of the training data");
    throw InvalidArgument(
        concat(who_, " monitors '", name_, "', which nothing adds to the logs"),
        concat("the model logs ", metrics, ", and with validation the same names after val_"),
        "Monitor one of these, give the model such a metric, or give fit a callback whose on_epoch_end "
        "adds the value");
  }
  [[nodiscard]] static bool has_validation(const Logs& logs) {
    for (const Logs::Entry& entry : logs)
      if (entry.name.starts_with("val_")) return true;
    return false;
  }

  std::string name_;
  std::string_view who_;
  Mode mode_;
  double min_delta_;
  bool more_is_better_ = false;
  double best_ = 0;
  bool guesses_ = false;          // true if the direction is assumed, but not yet reported
  bool reports_absence_ = false;  // true if the absence was reported
};

}  // namespace dist::nn::callbacks
