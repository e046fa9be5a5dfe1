#pragma once

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/folder.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/every_batches.hpp>
#include <dist/train/callbacks/monitor.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks::detail {

/// The path that `pattern` means: "{epoch}" and "{batch}" are these numbers, "{val_loss}" and the like values of the logs,
/// written as Python's format does it for "{epoch:02d}" and "{val_loss:.2f}"; "{{" and "}}" are braces. Throws
/// InvalidArgument for other placeholders.
[[nodiscard]] inline std::string format_path(std::string_view pattern, std::size_t epoch,
                                             std::optional<std::size_t> batch, const Logs& logs) {
  const auto refuse = [&](std::string_view placeholder, std::string_view why) {
    throw InvalidArgument(
        concat("The path ", quoted(pattern), " of ModelCheckpoint cannot be formatted"),
        concat("{", placeholder, "}: ", why),
        "Use {epoch}, {batch} where it saves after batches, and names of the logs, with a format such as "
        "{epoch:02d} or {val_loss:.2f}");
  };
  /// The digits of "02d" before its letter.
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
          concat("ModelCheckpoint monitors '", monitor_.name(), "' and saves after batches"),
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
    lock_ = model.shared_by_callbacks(concat("lock of ", folder), [&] { return lock_folder(model, folder); });
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
