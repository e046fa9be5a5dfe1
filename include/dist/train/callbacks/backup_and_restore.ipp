#pragma once

#include <dist/checkpoint/checkpoint_manager.hpp>
#include <dist/checkpoint/preemption_handler.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/train/callbacks/backup_and_restore.hpp>

namespace dist::nn::callbacks {

struct BackupAndRestore::Backups {
  Backups(ModelView& model, const std::string& folder, std::vector<dist::detail::CheckpointPart> parts)
      : checkpoint(model.shared_strategy()), manager(checkpoint, folder, {.max_to_keep = 2}) {
    for (auto& part : parts) checkpoint.add_part(std::move(part));
  }
  dist::detail::AnyCheckpoint checkpoint;
  dist::detail::AnyCheckpointManager manager;
  std::optional<dist::detail::AnyPreemptionHandler> preemption;
};

DIST_INLINE void BackupAndRestore::begin(ModelView& model, std::vector<dist::detail::CheckpointPart> parts) {
  detail::require_calls_between_batches(model, static_cast<bool>(every_), "BackupAndRestoreOptions.save_freq");
  detail::require_calls_between_batches(model, options_.save_before_preemption,
                                        "BackupAndRestoreOptions.save_before_preemption");
  is_preempted_ = false;
  auto backups = std::make_shared<Backups>(model, folder_, std::move(parts));
  if (options_.save_before_preemption)
    backups->preemption.emplace(backups->manager, PreemptionOptions{.signal = options_.signal});
  if (const auto backup = backups->preemption ? backups->preemption->restored() : backups->manager.restore_latest()) {
    model.begin_at(epoch_, step_);
    if (model.is_chief())
      log_line(concat("BackupAndRestore: the fit continues from ", *backup, ", at epoch ", epoch_ + 1, ", batch ",
                      step_ + 1));
  }
  backups_ = std::move(backups);
}

DIST_INLINE void BackupAndRestore::end_batch(ModelView& model, std::size_t step) {
  step_ = step + 1;
  is_preempted_ = backups_->preemption && backups_->preemption->save_if_preempted();
  if (is_preempted_)
    model.stop_training_here();
  else if (every_.end(step))
    backups_->manager.save();
}

DIST_INLINE void BackupAndRestore::end_epoch(std::size_t epoch) {
  epoch_ = epoch + 1;
  step_ = 0;
  if (!every_) backups_->manager.save();
}

DIST_INLINE void BackupAndRestore::on_train_end(const Logs&) {
  if (options_.delete_checkpoint && !is_preempted_) backups_->manager.remove_all();
  backups_.reset();
}

}  // namespace dist::nn::callbacks
