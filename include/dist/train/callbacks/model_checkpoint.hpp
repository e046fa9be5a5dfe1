#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/every_batches.hpp>
#include <dist/train/callbacks/monitor.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::callbacks::detail {

/// Formats a path: replaces "{epoch}" and "{batch}" by these numbers, and "{val_loss}" etc. by values of the logs.
/// Supports Python's formats "{epoch:02d}" and "{val_loss:.2f}"; "{{" and "}}" are braces. Throws InvalidArgument for
/// other placeholders.
[[nodiscard]] std::string format_path(std::string_view pattern, std::size_t epoch, std::optional<std::size_t> batch,
                                      const Logs& logs);

}  // namespace dist::nn::callbacks::detail

namespace dist::nn::callbacks {

/// The options of ModelCheckpoint.
struct ModelCheckpointOptions {
  /// The name of the value in the logs that decides which model is the best.
  std::string monitor = "val_loss";
  /// True to save only models with a new best monitored value.
  bool save_best_only = false;
  /// The direction in which the monitored value improves.
  Mode mode = Mode::automatic;
  /// The number of batches between checkpoints. Default: after each epoch.
  std::optional<std::size_t> save_freq = std::nullopt;
  /// True to write the files in the background, while training continues.
  bool background = false;
};

/// Saves the model as a Checkpoint, part "model", after each epoch or every few batches (spec Q19). In the path,
/// "{epoch}" and "{batch}" count from 1, and names of the logs are replaced by their values:
/// "ckpt_{epoch:02d}_{val_loss:.2f}". `latest_checkpoint` finds the newest one. A fit locks the folder before the first
/// placeholder: ModelCheckpoints of the same model may share it; other writers of checkpoints are rejected.
class ModelCheckpoint {
 public:
  static constexpr std::string_view name = "ModelCheckpoint";
  static constexpr std::string_view adds_to_logs = "";

  /// Throws InvalidArgument if save_freq is 0, or is given while the best validation value decides, which is only
  /// measured after epochs.
  explicit ModelCheckpoint(std::string path, ModelCheckpointOptions options = {});

  /// Throws FileError if the folder cannot be created or written, or if another manager writes checkpoints there;
  /// InvalidArgument for a save_freq under a ParameterServer (spec Q24), and, with save_best_only, like Monitor::begin.
  void on_train_begin(auto& model) {
    begin(model, dist::detail::CheckpointPart::of<decltype(model.strategy().scope())>("model", model));
  }
  void on_epoch_begin(const Epoch& epoch) noexcept { epoch_ = epoch.index; }
  void on_train_batch_begin(std::size_t step) noexcept { every_.begin(step); }
  void on_train_batch_end(ModelView& model, std::size_t step, CurrentLogs logs);
  void on_epoch_end(ModelView& model, const Epoch&, const Logs& logs) {
    if (!every_) save(model, std::nullopt, logs);
  }
  /// Throws the error of the last checkpoint if it could not be written in the background.
  void on_train_end(const Logs&);

  /// See Trackable.
  void track(auto& visit) {
    monitor_.track(visit);
    every_.track(visit);
  }

 private:
  void begin(ModelView& model, dist::detail::CheckpointPart part);
  void save(const ModelView& model, std::optional<std::size_t> batch, const Logs& logs);

  std::string path_;
  ModelCheckpointOptions options_;
  Monitor monitor_;
  bool has_begun_ = false;
  std::shared_ptr<void> lock_;
  std::shared_ptr<dist::detail::AnyCheckpoint> checkpoint_;  // of the model in training
  detail::EveryBatches every_;
  std::size_t epoch_ = 0;
};

}  // namespace dist::nn::callbacks

#ifndef DIST_COMPILED
#include <dist/train/callbacks/model_checkpoint.ipp>
#endif
