#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/checkpoint/leaf.hpp>
#include <dist/context/any_strategy.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/monitor.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::callbacks::detail {

/// A kept copy of a leaf of a network; without a copy, the leaf itself. Refers to both.
class KeptLeaf final : public dist::detail::AnyLeaf {
 public:
  KeptLeaf(AnyLeaf& leaf, dist::detail::AnyTensor& kept) noexcept : leaf_(leaf), kept_(kept) {}

  [[nodiscard]] io::ElementType type() const noexcept override { return leaf_.type(); }
  [[nodiscard]] std::optional<Shape> shape() const override { return leaf_.shape(); }
  void require_restorable(const Shape& shape) const override { leaf_.require_restorable(shape); }
  [[nodiscard]] dist::detail::AnyTensor whole(const void* scope) override {
    return kept_.owner == nullptr ? leaf_.whole(scope) : kept_;
  }
  void restore(const void*, const dist::detail::AnyTensor& values) override { kept_ = values; }

 private:
  AnyLeaf& leaf_;
  dist::detail::AnyTensor& kept_;
};

/// A copy of a network's state in host memory.
class KeptWeights {
  using AnyLeaf = dist::detail::AnyLeaf;

 public:
  [[nodiscard]] bool is_empty() const noexcept { return !is_kept_; }

  /// Copies the network. A collective call of the processes.
  void keep(const dist::detail::AnyStrategy& strategy, dist::detail::WalkLeaves network) {
    tensors_.clear();
    strategy.in_scope([&](const void* scope) {
      network([&](std::string_view, AnyLeaf& leaf, bool) { tensors_.push_back(leaf.whole(scope)); });
    });
    is_kept_ = true;
  }
  /// Restores the same network. A collective call of the processes.
  void restore(const dist::detail::AnyStrategy& strategy, dist::detail::WalkLeaves network) const {
    strategy.in_scope([&](const void* scope) {
      std::size_t next = 0;
      network([&](std::string_view, AnyLeaf& leaf, bool) { leaf.restore(scope, tensors_[next++]); });
    });
  }

  /// Visits the copy, by the network's keys. See Trackable.
  void track(dist::detail::WalkLeaves network, auto& visit) {
    visit("is_kept", is_kept_);
    std::size_t next = 0;
    network([&](std::string_view key, AnyLeaf& leaf, bool) {
      if (next == tensors_.size()) tensors_.emplace_back();
      visit(key, KeptLeaf{leaf, tensors_[next++]});
    });
  }

 private:
  std::vector<dist::detail::AnyTensor> tensors_;  // in the order of the leaves
  bool is_kept_ = false;
};

}  // namespace dist::nn::callbacks::detail

namespace dist::nn::callbacks {

/// The options of EarlyStopping.
struct EarlyStoppingOptions {
  /// The name of the value in the logs.
  std::string monitor = "val_loss";
  /// The change that counts as an improvement.
  double min_delta = 0;
  /// The number of epochs without improvement after which the fit ends.
  std::size_t patience = 0;
  /// The direction in which the value improves.
  Mode mode = Mode::automatic;
  /// Values that are not better than this one do not count as improvements.
  std::optional<double> baseline = std::nullopt;
  /// True to restore the weights of the best epoch at the end of the fit, for whatever reason it ends.
  bool restore_best_weights = false;
  /// Earlier epochs are ignored.
  std::size_t start_from_epoch = 0;
};

/// Ends a fit when a value of the logs has stopped improving, by Keras' rules (spec Q23).
class EarlyStopping {
 public:
  static constexpr std::string_view name = "EarlyStopping";
  static constexpr std::string_view adds_to_logs = "";

  /// Watches the value that `options` name.
  explicit EarlyStopping(EarlyStoppingOptions options = {})
      : options_(std::move(options)), monitor_(options_.monitor, options_.mode, options_.min_delta, name) {}

  /// The epoch after which the last fit was stopped, counted from 0; empty if it was not.
  [[nodiscard]] std::optional<std::size_t> stopped_epoch() const noexcept { return stopped_epoch_; }
  /// The epoch with the best value of the last fit, counted from 0.
  [[nodiscard]] std::size_t best_epoch() const noexcept { return best_epoch_; }

  /// Throws InvalidArgument like Monitor::begin.
  void on_train_begin(ModelView& model);
  void on_epoch_end(auto& model, const Epoch& epoch, const Logs& logs) {
    end_epoch(model, network_of(model), epoch, logs);
  }
  void on_train_end(auto& model, const Logs&) {
    if (!best_weights_.is_empty()) best_weights_.restore(model.any_strategy(), network_of(model));
  }

  /// See Trackable.
  void track(auto& model, auto& visit) {
    monitor_.track(visit);
    visit("waited", waited_);
    visit("best_epoch", best_epoch_);
    if (options_.restore_best_weights) best_weights_.track(network_of(model), visit);
  }

 private:
  [[nodiscard]] static auto network_of(auto& model) {
    return dist::detail::walk_of<decltype(model.strategy().scope())>(model.network());
  }
  void end_epoch(ModelView& model, dist::detail::WalkLeaves network, const Epoch& epoch, const Logs& logs);

  EarlyStoppingOptions options_;
  Monitor monitor_;
  detail::KeptWeights best_weights_;
  std::size_t waited_ = 0;
  std::size_t best_epoch_ = 0;
  std::optional<std::size_t> stopped_epoch_;
};

/// Ends a fit after the batch in which the loss is NaN or infinite in any process, and logs it. All processes check
/// together after each batch.
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

#ifndef DIST_COMPILED
#include <dist/train/callbacks/early_stopping.ipp>
#endif
