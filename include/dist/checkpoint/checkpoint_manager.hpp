#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/checkpoint_reader.hpp>
#include <dist/checkpoint/checkpoint_series.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>

namespace dist {

/// The checkpoints of one training, in a folder: numbered, the newest few of them, and the way back to the newest one that
/// is whole (spec N18):
///
///     dist::CheckpointManager manager{checkpoint, "checkpoints", {.max_to_keep = 3}};
///     manager.restore_latest();
///     while (…) { …; manager.save(); }
///
/// One manager at a time has a folder: a second one, also of another program, is refused. Refers to the checkpoint. All
/// functions but `checkpoints` and `latest` are collective calls of the processes, outside replica functions.
template <class S>
class CheckpointManager {
 public:
  using Saving = typename Checkpoint<S>::Saving;

  /// Makes the folder where it is missing. Throws FileError where that fails, a process may not write there, or another manager
  /// has the folder, and InvalidArgument for a name with a '/'.
  CheckpointManager(Checkpoint<S>& checkpoint, std::string folder, CheckpointManagerOptions options = {})
      : checkpoint_(checkpoint),
        series_(std::make_shared<detail::CheckpointSeries>(
            detail::CheckpointSeries{std::move(folder), std::move(options)})) {
    const std::string& name = series_->options.name;
    if (name.empty() || name.find('/') != std::string::npos)
      throw InvalidArgument("CheckpointManagerOptions.name is no name of a folder", concat("it is ", quoted(name)),
                            "Give a name without '/', such as \"ckpt\"");
    detail::open_folder(strategy(), series_->folder, series_->lock);
    last_ = detail::broadcast_from_chief(strategy(), [&] {
      const std::vector<std::uint64_t> all = series_->numbers();
      return all.empty() ? std::uint64_t{0} : all.back();
    });
  }
  CheckpointManager(const CheckpointManager&) = delete;
  CheckpointManager& operator=(const CheckpointManager&) = delete;

  [[nodiscard]] S& strategy() const noexcept { return checkpoint_.strategy(); }

  /// Saves the next checkpoint, and returns its path when it is complete and older ones are removed. Throws as
  /// Checkpoint::save does.
  std::string save() {
    const Saving saving = start_save();
    saving.wait();
    return saving.path();
  }
  /// The same in the background (Checkpoint::start_save).
  [[nodiscard]] Saving start_save() {
    const std::uint64_t number = ++last_;
    return checkpoint_.start_save(series_->path_of(number), [series = series_] { series->remove_old(); });
  }

  /// Restores the newest checkpoint, and returns its path; nothing where there is none. One that was damaged is left out,
  /// with a line on stderr that says why, and the one before is restored. Throws FileError where all were damaged, and as
  /// Checkpoint::restore does for one that is whole and does not fit.
  std::optional<std::string> restore_latest() {
    std::optional<std::string> why;
    for (std::size_t older = 0;; ++older) {
      const std::uint64_t number = detail::broadcast_from_chief(strategy(), [&] {
        const std::vector<std::uint64_t> all = series_->numbers();
        return older < all.size() ? all[all.size() - 1 - older] : std::uint64_t{0};
      });
      if (number == 0) break;
      std::unique_ptr<detail::CheckpointReader> reader;
      std::string failure;
      try {
        reader = std::make_unique<detail::CheckpointReader>(series_->path_of(number));
        reader->verify();
      } catch (const FileError& error) {
        failure = error.what();
      }
      if (!detail::any_process(checkpoint_.strategy(), !failure.empty())) {
        checkpoint_.restore(std::move(reader));
        return series_->path_of(number);
      }
      if (!why) why = failure;
      if (!failure.empty()) log_line(concat("checkpoint ", series_->path_of(number), " is left out: ", failure));
    }
    if (why)
      throw FileError(series_->folder, "has no checkpoint that is whole", *why,
                      "Train from the beginning, in another folder");
    return std::nullopt;
  }

  /// Removes all checkpoints, once nothing is written any more.
  void remove_all() {
    checkpoint_.wait();
    detail::broadcast_from_chief(strategy(), [&] {
      for (const std::uint64_t number : series_->numbers()) detail::remove_checkpoint(series_->path_of(number));
      return std::uint64_t{0};
    });
  }

  /// The paths of the checkpoints there are, the oldest first.
  [[nodiscard]] std::vector<std::string> checkpoints() const {
    std::vector<std::string> paths;
    for (const std::uint64_t number : series_->numbers()) paths.push_back(series_->path_of(number));
    return paths;
  }
  /// That of the newest.
  [[nodiscard]] std::optional<std::string> latest() const {
    const std::vector<std::uint64_t> all = series_->numbers();
    if (all.empty()) return std::nullopt;
    return series_->path_of(all.back());
  }

 private:
  Checkpoint<S>& checkpoint_;
  std::shared_ptr<detail::CheckpointSeries> series_;  // kept by a save that goes on, too
  std::uint64_t last_ = 0;                            // the number of the newest
};

template <class S>
CheckpointManager(Checkpoint<S>&, std::string) -> CheckpointManager<S>;
template <class S>
CheckpointManager(Checkpoint<S>&, std::string, CheckpointManagerOptions) -> CheckpointManager<S>;

}  // namespace dist
