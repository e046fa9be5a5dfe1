#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/every_batches.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::callbacks {

/// The options of BackupAndRestore.
struct BackupAndRestoreOptions {
  /// The number of batches between backups. Default: after each epoch.
  std::optional<std::size_t> save_freq = std::nullopt;
  /// True to save a backup and end the fit after the batch if any process receives `signal`, see `is_preempted`.
  bool save_before_preemption = false;
  /// True to delete the backups after a complete fit.
  bool delete_checkpoint = true;
  /// The signal that announces the end of a process.
  int signal = SIGTERM;
};

/// Makes a fit resumable: if the program is interrupted and started again with the same fit, it continues from the last
/// backup, and the results are bitwise identical to an uninterrupted fit (spec Q20). A backup contains the model, and
/// the state of all callbacks of the fit with a `track` (see nn::hooks). Without a backup in the folder, the fit starts
/// from the beginning; otherwise the chief logs where it continues.
class BackupAndRestore {
 public:
  static constexpr std::string_view name = "BackupAndRestore";
  static constexpr std::string_view adds_to_logs = "";

  /// Throws InvalidArgument if save_freq is 0.
  explicit BackupAndRestore(std::string folder, BackupAndRestoreOptions options = {})
      : folder_(std::move(folder)), options_(options), every_(options.save_freq, "BackupAndRestoreOptions.save_freq") {}

  /// Throws FileError if another callback or process uses the folder (the message names the process), or if no backup
  /// there is complete. Throws InvalidArgument for save_freq and save_before_preemption under a ParameterServer (spec
  /// Q24).
  void on_train_begin(auto& model, auto& callbacks) {
    using Scope = decltype(model.strategy().scope());
    begin(model, {dist::detail::CheckpointPart::of<Scope>("model", model),
                  dist::detail::CheckpointPart::of<Scope>("epoch", epoch_),
                  dist::detail::CheckpointPart::of<Scope>("step", step_),
                  dist::detail::CheckpointPart::of<Scope>("callbacks", callbacks)});
  }
  /// True if the last fit was ended because a process received the signal. The program should then return 42, to be
  /// restarted.
  [[nodiscard]] bool is_preempted() const noexcept { return is_preempted_; }
  void on_epoch_begin(const Epoch& epoch) noexcept { epoch_ = epoch.index; }
  void on_train_batch_begin(std::size_t step) noexcept { every_.begin(step); }
  void on_train_batch_end(ModelView& model, auto&, std::size_t step, CurrentLogs) { end_batch(model, step); }
  void on_epoch_end(ModelView&, auto&, const Epoch& epoch, const Logs&) { end_epoch(epoch.index); }
  void on_train_end(const Logs&);

  /// See Trackable.
  void track(auto& visit) { every_.track(visit); }

 private:
  struct Backups;

  void begin(ModelView& model, std::vector<dist::detail::CheckpointPart> parts);
  void end_batch(ModelView& model, std::size_t step);
  void end_epoch(std::size_t epoch);

  std::string folder_;
  BackupAndRestoreOptions options_;
  detail::EveryBatches every_;
  bool is_preempted_ = false;
  std::shared_ptr<Backups> backups_;  // of the model in training
  std::uint64_t epoch_ = 0;           // the position to continue from
  std::uint64_t step_ = 0;
};

}  // namespace dist::nn::callbacks

#ifndef DIST_COMPILED
#include <dist/train/callbacks/backup_and_restore.ipp>
#endif
