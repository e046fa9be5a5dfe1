#pragma once

#include <charconv>
#include <cstdio>
#include <utility>

#include <dist/checkpoint/folder.hpp>
#include <dist/core/error.hpp>
#include <dist/train/callbacks/model_checkpoint.hpp>

namespace dist::nn::callbacks::detail {

DIST_INLINE std::string format_path(std::string_view pattern, std::size_t epoch, std::optional<std::size_t> batch,
                                    const Logs& logs) {
  const auto refuse = [&](std::string_view placeholder, std::string_view why) {
    throw InvalidArgument(
        concat("The path ", quoted(pattern), " of ModelCheckpoint cannot be formatted"),
        concat("{", placeholder, "}: ", why),
        "Use {epoch}, {batch} where it saves after batches, and names of the logs, with a format such as "
        "{epoch:02d} or {val_loss:.2f}");
  };
  /// Returns the number in "02" of "02d".
  const auto number_in = [](std::string_view digits) -> std::optional<int> {
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || end != digits.data() + digits.size() || number < 0 || number > 99) return std::nullopt;
    return number;
  };
  std::string path;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char letter = pattern[at];
    if (letter != '{' && letter != '}') {
      path += letter;
      continue;
    }
    if (at + 1 < pattern.size() && pattern[at + 1] == letter) {
      path += letter;
      ++at;
      continue;
    }
    const std::size_t end = pattern.find('}', at);
    if (letter == '}' || end == std::string_view::npos) refuse(pattern.substr(at), "braces do not match");
    const std::string_view placeholder = pattern.substr(at + 1, end - at - 1);
    at = end;
    const std::string_view name = placeholder.substr(0, placeholder.find(':'));
    const std::string_view format =
        name.size() == placeholder.size() ? std::string_view{} : placeholder.substr(name.size() + 1);
    char shown[400];
    if (name == "epoch" || (name == "batch" && batch)) {
      const std::optional<int> width = format.empty() ? 0
                                       : format.back() == 'd'
                                           ? number_in(format.size() == 1 ? "0" : format.substr(0, format.size() - 1))
                                           : std::nullopt;
      if (!width) refuse(placeholder, "an integer has a format such as 02d");
      std::snprintf(shown, sizeof shown, format.starts_with('0') ? "%0*zu" : "%*zu", *width,
                    name == "epoch" ? epoch : *batch);
    } else {
      const double* const value = logs.find(name);
      if (value == nullptr) refuse(placeholder, concat("the logs have ", logs.names()));
      const bool is_fixed = format.size() >= 3 && format.front() == '.' && format.back() == 'f';
      const std::optional<int> precision = format.empty() ? std::optional{-1}
                                           : is_fixed     ? number_in(format.substr(1, format.size() - 2))
                                                          : std::nullopt;
      if (!precision) refuse(placeholder, "a number has a format such as .2f");
      if (*precision < 0)
        *std::to_chars(shown, shown + sizeof shown - 1, *value).ptr = '\0';
      else
        std::snprintf(shown, sizeof shown, "%.*f", *precision, *value);
    }
    path += shown;
  }
  return path;
}

}  // namespace dist::nn::callbacks::detail

namespace dist::nn::callbacks {

DIST_INLINE ModelCheckpoint::ModelCheckpoint(std::string path, ModelCheckpointOptions options)
    : path_(std::move(path)),
      options_(std::move(options)),
      monitor_(options_.monitor, options_.mode, 0, name),
      every_(options_.save_freq, "ModelCheckpointOptions.save_freq") {
  if (every_ && options_.save_best_only && monitor_.is_of_validation())
    throw InvalidArgument(
        concat("ModelCheckpoint monitors '", monitor_.name(), "' and saves after batches"),
        "save_freq is given, and validation runs after an epoch, so the value does not exist after a batch",
        "Leave out ModelCheckpointOptions.save_freq, or monitor 'loss'");
}

DIST_INLINE void ModelCheckpoint::begin(ModelView& model, dist::detail::CheckpointPart part) {
  detail::require_calls_between_batches(model, static_cast<bool>(every_), "ModelCheckpointOptions.save_freq");
  if (options_.save_best_only && !std::exchange(has_begun_, true)) monitor_.begin(model);  // later fits continue
  lock_.reset();                                                                           // of a fit that threw
  checkpoint_ = std::make_shared<dist::detail::AnyCheckpoint>(model.shared_strategy());
  checkpoint_->add_part(std::move(part));
  const std::size_t first = path_.find('{');
  const std::string folder = dist::detail::folder_of(first == std::string::npos ? dist::detail::without_slashes(path_)
                                                                                : path_.substr(0, first));
  lock_ = model.shared_by_callbacks(concat("lock of ", folder), [&] {
    auto lock = std::make_shared<std::optional<dist::detail::FolderLock>>();  // in the first process
    dist::detail::open_folder(model.any_strategy(), folder, *lock);
    return lock;
  });
}

DIST_INLINE void ModelCheckpoint::on_train_batch_end(ModelView& model, std::size_t step, CurrentLogs logs) {
  if (!every_.end(step)) return;
  const bool reads = options_.save_best_only || path_.find('{') != std::string::npos;
  save(model, step + 1, reads ? logs.of_all_processes() : Logs{});
}

DIST_INLINE void ModelCheckpoint::on_train_end(const Logs&) {
  const auto until_written = std::move(lock_);
  if (const auto checkpoint = std::exchange(checkpoint_, nullptr)) checkpoint->wait();
}

DIST_INLINE void ModelCheckpoint::save(const ModelView& model, std::optional<std::size_t> batch, const Logs& logs) {
  if (options_.save_best_only) {
    const double* const value = monitor_.find(model, logs);
    if (value == nullptr || !monitor_.improve(*value)) return;
  }
  const auto saving = checkpoint_->start_save(detail::format_path(path_, epoch_ + 1, batch, logs));
  if (!options_.background) saving.wait();
}

}  // namespace dist::nn::callbacks
