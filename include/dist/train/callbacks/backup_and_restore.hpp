#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/checkpoint_manager.hpp>
#include <dist/checkpoint/preemption_handler.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/every_batches.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks {

struct BackupAndRestoreOptions {
  /// After every so many batches instead of after each epoch.
  std::optional<std::size_t> save_freq = std::nullopt;
  /// Whether the fit is backed up, and ended after the batch, when some process is told to end (SIGTERM): see
  /// `is_preempted`.
  bool save_before_preemption = false;
  /// Whether backups are removed when the fit has come to its end.
  bool delete_checkpoint = true;
};

/// Keeps what a fit needs to go on after the program was ended in the middle of it: the program that is started again, with
/// the same fit, goes on where the last backup was made, and ends with the bits of a fit that nothing interrupted (spec
/// Q20). A backup has the model, and the state of all callbacks of the fit that have a `track` (see nn::hooks), wherever they are
/// in the list. A fit that begins with no backup in the folder begins as without it.
class BackupAndRestore {
 public:
  static constexpr std::string_view name = "BackupAndRestore";
  static constexpr std::string_view adds_to_logs = "";

  /// Throws InvalidArgument for a save_freq of 0.
  explicit BackupAndRestore(std::string folder, BackupAndRestoreOptions options = {})
      : folder_(std::move(folder)), options_(options), every_(options.save_freq, "BackupAndRestoreOptions.save_freq") {}

  /// Throws FileError where another callback or program, whose process it names, has the folder, and where there are backups
  /// of which none is whole; InvalidArgument for a save_freq and save_before_preemption under a ParameterServer (spec Q24).
  void on_train_begin(auto& model, auto& callbacks) {
    detail::require_calls_between_batches(model, static_cast<bool>(every_), "BackupAndRestoreOptions.save_freq");
    detail::require_calls_between_batches(model, options_.save_before_preemption,
                                          "BackupAndRestoreOptions.save_before_preemption");
    is_preempted_ = false;
    auto backups = std::make_shared<Backups<std::remove_reference_t<decltype(model)>>>(model, callbacks, *this);
    if (options_.save_before_preemption) backups->preemption.emplace(backups->manager);
    const bool has_backup = backups->preemption ? backups->preemption->restored().has_value()
                                                : backups->manager.restore_latest().has_value();
    if (has_backup) model.begin_at(epoch_, step_);
    backups_ = std::move(backups);
  }
  /// Whether the last fit was ended because a process was told to end. The program then returns 42, so that who started it
  /// starts it again.
  [[nodiscard]] bool is_preempted() const noexcept { return is_preempted_; }
  void on_epoch_begin(const Epoch& epoch) noexcept { epoch_ = epoch.index; }
  void on_train_batch_begin(std::size_t step) noexcept { every_.begin(step); }
  void on_train_batch_end(auto& model, auto&, std::size_t step, CurrentLogs) {
    auto& backups = backups_of(model);
    step_ = step + 1;
    is_preempted_ = backups.preemption && backups.preemption->save_if_preempted();
    if (is_preempted_)
      model.stop_training_here();
    else if (every_.end(step))
      backups.manager.save();
  }
  void on_epoch_end(auto& model, auto&, const Epoch& epoch, const Logs&) {
    epoch_ = epoch.index + 1;
    step_ = 0;
    if (!every_) backups_of(model).manager.save();
  }
  void on_train_end(auto& model, const Logs&) {
    if (options_.delete_checkpoint && !is_preempted_) backups_of(model).manager.remove_all();
    backups_.reset();
  }

  /// See Trackable.
  void track(auto& visit) { every_.track(visit); }

 private:
  template <class Model>
  struct Backups {
    using S = std::remove_reference_t<decltype(std::declval<Model&>().strategy())>;
    Backups(Model& model, auto& callbacks, BackupAndRestore& callback)
        : checkpoint(model.strategy()), manager(checkpoint, callback.folder_, {.max_to_keep = 2}) {
      checkpoint.add("model", model).add("epoch", callback.epoch_).add("step", callback.step_);
      checkpoint.add("callbacks", callbacks);
    }
    Checkpoint<S> checkpoint;
    CheckpointManager<S> manager;
    std::optional<PreemptionHandler<S>> preemption;
  };
  template <class Model>
  Backups<Model>& backups_of(Model&) {
    return *static_cast<Backups<Model>*>(backups_.get());
  }

  std::string folder_;
  BackupAndRestoreOptions options_;
  detail::EveryBatches every_;
  bool is_preempted_ = false;
  std::shared_ptr<void> backups_;  // of the model that is trained
  std::uint64_t epoch_ = 0;        // where the fit goes on
  std::uint64_t step_ = 0;
};

}  // namespace dist::nn::callbacks
