#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/folder.hpp>
#include <dist/context/any_strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>

namespace dist {

/// Options of a CheckpointManager.
struct CheckpointManagerOptions {
  /// Number of newest checkpoints to keep; 0 keeps all.
  std::size_t max_to_keep = 5;
  /// Checkpoints whose number is a multiple of this are never removed; 0: none.
  std::uint64_t keep_every = 0;
  /// Checkpoints are named "<folder>/<name>-<number>".
  std::string name = "ckpt";
};

namespace detail {

/// The checkpoints "<folder>/<name>-<number>", and the lock of their writer.
struct CheckpointSeries {
  std::string folder;
  CheckpointManagerOptions options;
  std::optional<FolderLock> lock = std::nullopt;  ///< in the process that removes old checkpoints

  [[nodiscard]] std::string path_of(std::uint64_t number) const;
  /// Returns the number of "<name>-<number>".
  [[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view name) const;
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;
  /// Removes old checkpoints, and incomplete saves older than the newest checkpoint.
  void remove_old() const;
};

/// The part of CheckpointManager that does not depend on the strategy type.
class AnyCheckpointManager {
 public:
  using Saving = AnyCheckpoint::Saving;

  AnyCheckpointManager(AnyCheckpoint& checkpoint, std::string folder, CheckpointManagerOptions options);
  AnyCheckpointManager(const AnyCheckpointManager&) = delete;
  AnyCheckpointManager& operator=(const AnyCheckpointManager&) = delete;

  [[nodiscard]] const AnyStrategy& any_strategy() const noexcept { return checkpoint_.any_strategy(); }

  /// Saves the next checkpoint, and returns its path once it is complete and old ones are removed. Throws the errors of
  /// Checkpoint::save.
  std::string save();
  /// Saves the next checkpoint in the background (Checkpoint::start_save).
  [[nodiscard]] Saving start_save();

  /// Restores the newest checkpoint and returns its path, if any exists. Skips damaged checkpoints with a message on
  /// stderr. Throws FileError if all are damaged, and the errors of Checkpoint::restore if an intact one does not fit.
  std::optional<std::string> restore_latest();

  /// Removes all checkpoints, after waiting for a pending save.
  void remove_all();

  /// Returns the paths of the checkpoints, oldest first.
  [[nodiscard]] std::vector<std::string> checkpoints() const;
  [[nodiscard]] std::optional<std::string> latest() const;

 private:
  AnyCheckpoint& checkpoint_;
  std::shared_ptr<CheckpointSeries> series_;  // shared with a pending save
  std::uint64_t last_ = 0;
};

}  // namespace detail

/// Numbered checkpoints of a training in a folder. Keeps the newest ones, and restores the newest intact one (spec
/// N18):
///
///     dist::CheckpointManager manager{checkpoint, "checkpoints", {.max_to_keep = 3}};
///     manager.restore_latest();
///     while (…) { …; manager.save(); }
///
/// A folder has at most one manager at a time, across programs. The checkpoint must outlive the manager. All functions
/// except `checkpoints` and `latest` are collective calls of the processes, outside replica functions.
template <class S>
class CheckpointManager : public detail::AnyCheckpointManager {
 public:
  /// Creates the folder if necessary. Throws FileError if that fails, a process cannot write there, or another manager
  /// uses the folder, and InvalidArgument if the name contains a '/'.
  CheckpointManager(Checkpoint<S>& checkpoint, std::string folder, CheckpointManagerOptions options = {})
      : AnyCheckpointManager(checkpoint, std::move(folder), std::move(options)), strategy_(checkpoint.strategy()) {}

  /// The strategy of the checkpoint.
  [[nodiscard]] S& strategy() const noexcept { return strategy_; }

 private:
  S& strategy_;
};

/// Deduces the strategy.
template <class S>
CheckpointManager(Checkpoint<S>&, std::string) -> CheckpointManager<S>;
/// Deduces the strategy.
template <class S>
CheckpointManager(Checkpoint<S>&, std::string, CheckpointManagerOptions) -> CheckpointManager<S>;

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/checkpoint/checkpoint_manager.ipp>
#endif
