#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dist/context/run_collectively.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/monitor.hpp>
#include <dist/train/kept_weights.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;
  /// So many epochs without a better value end the fit.
  std::size_t patience = 0;
  Mode mode = Mode::automatic;
  /// Values that are not better than this one count as none.
  std::optional<double> baseline = std::nullopt;
  /// True to give the network the weights of its best epoch at the end of the fit, for whatever reason it ends.
  bool restore_best_weights = false;
  /// Epochs before it are not looked at.
  std::size_t start_from_epoch = 0;
};

/// Ends a fit when a value of the logs has stopped to get better, by Keras' rules (spec Q23).
class EarlyStopping {
 public:
  static constexpr std::string_view name = "EarlyStopping";
  static constexpr std::string_view adds_to_logs = "";

  explicit EarlyStopping(EarlyStoppingOptions options = {})
      : options_(std::move(options)), monitor_(options_.monitor, options_.mode, options_.min_delta, name) {}

  /// The epoch after which the last fit was stopped, counted from 0; none if it was not.
  [[nodiscard]] std::optional<std::size_t> stopped_epoch() const noexcept { return stopped_epoch_; }
  [[nodiscard]] std::size_t best_epoch() const noexcept { return best_epoch_; }

  /// Throws InvalidArgument as Monitor::begin does.
  void on_train_begin(auto& model) {
    monitor_.begin(model);
    best_weights_ = {};
    waited_ = 0;
    best_epoch_ = 0;
    stopped_epoch_.reset();
  }
  void on_epoch_end(auto& model, const Epoch& epoch, const Logs& logs) {
    const double* const value = monitor_.find(model, logs);
    if (value == nullptr || epoch.index < options_.start_from_epoch) return;
    const auto keep = [&] {
      if (options_.restore_best_weights) best_weights_.keep(model.strategy().scope(), model.network());
      best_epoch_ = epoch.index;
    };
    ++waited_;
    if (monitor_.improve(*value)) {
      keep();
      if (!options_.baseline || monitor_.is_better(*value, *options_.baseline)) waited_ = 0;
      return;
    }
    if (options_.restore_best_weights && best_weights_.is_empty()) keep();
    if (waited_ < options_.patience || epoch.index == 0) return;
    stopped_epoch_ = epoch.index;
    model.stop_training();
  }
  void on_train_end(auto& model, const Logs&) {
    if (!best_weights_.is_empty()) best_weights_.restore(model.strategy().scope(), model.network());
  }

  /// See Trackable.
  void track(auto& model, auto& visit) {
    monitor_.track(visit);
    visit("waited", waited_);
    visit("best_epoch", best_epoch_);
    if (options_.restore_best_weights) best_weights_.track(model.network(), visit);
  }

 private:
  EarlyStoppingOptions options_;
  Monitor monitor_;
  nn::detail::KeptWeights best_weights_;
  std::size_t waited_ = 0;
  std::size_t best_epoch_ = 0;
  std::optional<std::size_t> stopped_epoch_;
};

/// Ends a fit after the batch in which its loss is NaN or infinite in some process, and reports it. The processes look
/// together, after each batch.
class TerminateOnNaN {
 public:
  void on_train_batch_end(auto& model, std::size_t step, CurrentLogs logs) {
    double loss = logs()["loss"];
    const auto& strategy = model.strategy();
    dist::detail::run_collectively(strategy, [&] { strategy.workers().all_reduce(sum, std::span<double>{&loss, 1}); });
    if (std::isfinite(loss)) return;
    if (model.is_chief()) log_line(concat("batch ", step, ": the loss is ", loss, ", training ends"));
    model.stop_training_after_batch();
  }
};

}  // namespace dist::nn::callbacks
