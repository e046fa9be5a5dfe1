#pragma once

#include <charconv>

#include <dist/checkpoint/checkpoint_manager.hpp>
#include <dist/checkpoint/checkpoint_reader.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>

namespace dist::detail {

DIST_INLINE std::string CheckpointSeries::path_of(std::uint64_t number) const {
  return concat(folder, "/", options.name, "-", number);
}

DIST_INLINE std::optional<std::uint64_t> CheckpointSeries::number_of(std::string_view name) const {
  if (!name.starts_with(options.name)) return std::nullopt;
  name.remove_prefix(options.name.size());
  if (!name.starts_with('-')) return std::nullopt;
  name.remove_prefix(1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || number == 0) return std::nullopt;
  return number;
}

DIST_INLINE std::vector<std::uint64_t> CheckpointSeries::numbers() const {
  std::vector<std::uint64_t> all;
  for (const std::string& name : names_in(folder))
    if (const auto number = number_of(name); number && is_checkpoint(concat(folder, "/", name))) all.push_back(*number);
  std::sort(all.begin(), all.end());
  return all;
}

DIST_INLINE void CheckpointSeries::remove_old() const {
  const std::vector<std::uint64_t> all = numbers();
  for (const std::string& name : names_in(folder))
    if (const auto number = number_of(name);
        number && !all.empty() && *number < all.back() && !is_checkpoint(path_of(*number)))
      remove_checkpoint(path_of(*number));
  if (options.max_to_keep == 0 || all.size() <= options.max_to_keep) return;
  for (std::size_t i = 0; i + options.max_to_keep < all.size(); ++i)
    if (options.keep_every == 0 || all[i] % options.keep_every != 0) remove_checkpoint(path_of(all[i]));
}

DIST_INLINE AnyCheckpointManager::AnyCheckpointManager(AnyCheckpoint& checkpoint, std::string folder,
                                                       CheckpointManagerOptions options)
    : checkpoint_(checkpoint),
      series_(std::make_shared<CheckpointSeries>(CheckpointSeries{std::move(folder), std::move(options)})) {
  const std::string& name = series_->options.name;
  if (name.empty() || name.find('/') != std::string::npos)
    throw InvalidArgument("CheckpointManagerOptions.name is not a valid folder name", concat("it is ", quoted(name)),
                          "Use a name without '/', such as \"ckpt\"");
  open_folder(any_strategy(), series_->folder, series_->lock);
  last_ = any_strategy().broadcast_from_chief([&] {
    const std::vector<std::uint64_t> all = series_->numbers();
    return all.empty() ? std::uint64_t{0} : all.back();
  });
}

DIST_INLINE std::string AnyCheckpointManager::save() {
  const Saving saving = start_save();
  saving.wait();
  return saving.path();
}

DIST_INLINE auto AnyCheckpointManager::start_save() -> Saving {
  return checkpoint_.start_save(series_->path_of(++last_), [series = series_] { series->remove_old(); });
}

DIST_INLINE std::optional<std::string> AnyCheckpointManager::restore_latest() {
  std::optional<std::string> why;
  for (std::size_t older = 0;; ++older) {
    const std::uint64_t number = any_strategy().broadcast_from_chief([&] {
      const std::vector<std::uint64_t> all = series_->numbers();
      return older < all.size() ? all[all.size() - 1 - older] : std::uint64_t{0};
    });
    if (number == 0) break;
    std::unique_ptr<CheckpointReader> reader;
    std::string failure;
    try {
      reader = std::make_unique<CheckpointReader>(series_->path_of(number));
      reader->verify();
    } catch (const FileError& error) {
      failure = error.what();
    }
    if (!any_strategy().any_process(!failure.empty())) {
      checkpoint_.restore(std::move(reader));
      return series_->path_of(number);
    }
    if (!why) why = failure;
    if (!failure.empty()) log_line(concat("checkpoint ", series_->path_of(number), " is skipped: ", failure));
  }
  if (why)
    throw FileError(series_->folder, "has no intact checkpoint", *why, "Train from the beginning, in another folder");
  return std::nullopt;
}

DIST_INLINE void AnyCheckpointManager::remove_all() {
  checkpoint_.wait();
  any_strategy().broadcast_from_chief([&] {
    for (const std::uint64_t number : series_->numbers()) remove_checkpoint(series_->path_of(number));
    return std::uint64_t{0};
  });
}

DIST_INLINE std::vector<std::string> AnyCheckpointManager::checkpoints() const {
  std::vector<std::string> paths;
  for (const std::uint64_t number : series_->numbers()) paths.push_back(series_->path_of(number));
  return paths;
}

DIST_INLINE std::optional<std::string> AnyCheckpointManager::latest() const {
  const std::vector<std::uint64_t> all = series_->numbers();
  if (all.empty()) return std::nullopt;
  return series_->path_of(all.back());
}

}  // namespace dist::detail
