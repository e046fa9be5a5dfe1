#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/folder.hpp>
#include <dist/core/pointers.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/every_batches.hpp>
#include <dist/train/callbacks/format_path.hpp>
#include <dist/train/callbacks/monitor.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks {

struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  /// Whether only models are saved whose monitored value is better than all before.
  bool save_best_only = false;
  Mode mode = Mode::automatic;
  /// After every so many batches instead of after each epoch.
  std::optional<std::size_t> save_freq = std::nullopt;
  /// Whether training goes on while files are written.
  bool background = false;
};

/// Saves the model as a Checkpoint, part "model", after each epoch or every few batches (spec Q19): in the folder that the
/// path means, in which "{epoch}" and "{batch}" count from 1, and names of the logs, as in "ckpt_{epoch:02d}_{val_loss:.2f}",
/// stand for their values. `latest_checkpoint` finds the newest one. During a fit the folder above the first placeholder is
/// locked: ModelCheckpoints of one model may share it; all others that write checkpoints, such as other models and programs,
/// are refused.
class ModelCheckpoint {
 public:
  static constexpr std::string_view name = "ModelCheckpoint";
  static constexpr std::string_view adds_to_logs = "";

  /// Throws InvalidArgument for a save_freq of 0, and for a save_freq where the value of a validation decides, which is measured
  /// after each epoch.
  explicit ModelCheckpoint(std::string path, ModelCheckpointOptions options = {})
      : path_(std::move(path)),
        options_(std::move(options)),
        monitor_(options_.monitor, options_.mode, 0, name),
        every_(options_.save_freq, "ModelCheckpointOptions.save_freq") {
    if (every_ && options_.save_best_only && monitor_.is_of_validation())
      throw InvalidArgument(
          text("ModelCheckpoint monitors '", monitor_.name(), "' and saves after batches"),
          "save_freq is given, and a validation comes after an epoch, so that no batch would have the value",
          "Leave out ModelCheckpointOptions.save_freq, or monitor 'loss'");
  }

  /// Throws FileError if the folder cannot be made or written, or if another manager writes checkpoints there, and InvalidArgument
  /// for a save_freq under a ParameterServer (spec Q24), and as Monitor::begin does where the best models alone are saved.
  void on_train_begin(auto& model) {
    detail::require_calls_between_batches(model, static_cast<bool>(every_), "ModelCheckpointOptions.save_freq");
    if (options_.save_best_only && !std::exchange(has_begun_, true)) monitor_.begin(model);  // later fits go on
    checkpoint_.reset();
    lock_.reset();  // of a fit that threw
    const std::size_t first = path_.find('{');
    const std::string folder = dist::detail::folder_of(first == std::string::npos ? dist::detail::without_slashes(path_)
                                                                                  : path_.substr(0, first));
    lock_ = model.shared_by_callbacks(text("lock of ", folder), [&] { return lock_folder(model, folder); });
  }
  void on_epoch_begin(const Epoch& epoch) noexcept { epoch_ = epoch.index; }
  void on_train_batch_begin(std::size_t step) noexcept { every_.begin(step); }
  void on_train_batch_end(auto& model, std::size_t step, CurrentLogs logs) {
    if (!every_.end(step)) return;
    const bool reads = options_.save_best_only || path_.find('{') != std::string::npos;
    save(model, step + 1, reads ? logs.of_all_processes() : Logs{});
  }
  void on_epoch_end(auto& model, const Epoch&, const Logs& logs) {
    if (!every_) save(model, std::nullopt, logs);
  }
  /// Throws what kept the last checkpoint from being written in the background.
  void on_train_end(auto& model, const Logs&) {
    const auto until_written = std::move(lock_);
    if (checkpoint_ != nullptr) checkpoint_of(model).wait();
    checkpoint_.reset();
  }

  /// See Trackable.
  void track(auto& visit) {
    monitor_.track(visit);
    every_.track(visit);
  }

 private:
  using Lock = std::optional<dist::detail::FolderLock>;  // in the first process

  /// A collective call of the processes.
  [[nodiscard]] static std::shared_ptr<Lock> lock_folder(auto& model, const std::string& folder) {
    auto lock = std::make_shared<Lock>();
    dist::detail::open_folder(model.strategy(), folder, *lock);
    return lock;
  }
  template <class Model>
  auto& checkpoint_of(Model& model) {
    using OfModel = Checkpoint<std::remove_reference_t<decltype(model.strategy())>>;
    if (checkpoint_ == nullptr) {
      auto made = std::make_shared<OfModel>(model.strategy());
      made->add("model", model);
      checkpoint_ = std::move(made);
    }
    return *static_cast<OfModel*>(checkpoint_.get());
  }
  void save(auto& model, std::optional<std::size_t> batch, const Logs& logs) {
    if (options_.save_best_only) {
      const double* const value = monitor_.find(model, logs);
      if (value == nullptr || !monitor_.improve(*value)) return;
    }
    const auto saving = checkpoint_of(model).start_save(detail::format_path(path_, epoch_ + 1, batch, logs));
    if (!options_.background) saving.wait();
  }

  std::string path_;
  ModelCheckpointOptions options_;
  Monitor monitor_;
  bool has_begun_ = false;
  std::shared_ptr<Lock> lock_;
  std::shared_ptr<void> checkpoint_;  // of the model that is trained
  detail::EveryBatches every_;
  std::size_t epoch_ = 0;
};

}  // namespace dist::nn::callbacks
