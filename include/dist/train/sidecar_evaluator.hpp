#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/checkpoint_reader.hpp>
#include <dist/checkpoint/folder.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/core/text.hpp>
#include <dist/core/threads.hpp>
#include <dist/device/wait.hpp>
#include <dist/io/file.hpp>
#include <dist/train/fit_options.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model.hpp>

namespace dist::nn {

/// The options of SidecarEvaluator.
struct SidecarEvaluatorOptions {
  /// The number of the checkpoint after which the evaluator ends, in the order of saving, from 1, including removed and
  /// skipped ones. Empty: the evaluator ends when the training is marked as ended.
  std::optional<std::uint64_t> max_evaluations = std::nullopt;
  /// The number of epochs of the training. End marks of earlier trainings with fewer epochs are ignored.
  std::uint64_t epochs = 0;
  /// The longest wait for a new checkpoint; 0: no limit.
  std::chrono::nanoseconds timeout = std::chrono::hours{1};
  /// The time between two checks of the folder.
  std::chrono::nanoseconds poll = std::chrono::seconds{1};
  /// The interval of messages on stderr about the awaited checkpoint; 0: after each check that finds nothing.
  std::chrono::nanoseconds tell_after = std::chrono::seconds{30};
};

namespace detail {

template <class M>
inline constexpr bool is_model = false;
template <class S, class Network, class O, class L, class... Ms>
inline constexpr bool is_model<Model<S, Network, O, L, Ms...>> = true;

/// The step count of an optimizer, as a part of a checkpoint.
struct SavedIterations {
  std::int64_t& count;
  void track(auto& visit) { visit("iterations", count); }
};
/// The parts of a model's checkpoint that an evaluation needs.
template <class Network>
struct EvaluatedParts {
  Network& network;
  SavedIterations& optimizer;
  void track(auto& visit) {
    visit("network", network);
    visit("optimizer", optimizer);
  }
};

/// True if a training with `epochs` epochs or more is marked as ended in `folder`. A collective call of the processes.
[[nodiscard]] bool is_training_ended(const auto& strategy, const std::string& folder, std::uint64_t epochs) {
  return dist::detail::broadcast_from_chief(strategy, [&] {
    const std::optional<std::uint64_t> ended = ended_training(folder);
    return ended && *ended >= epochs;
  });
}

}  // namespace detail

/// Evaluates the checkpoints of a training in other processes (Keras' SidecarEvaluator, spec Q27). It always takes the
/// newest unseen one in `folder`, so it may skip some.
///
///     nn::SidecarEvaluator evaluator{model, "checkpoints", {.max_evaluations = 12}};
///     evaluator.run(test, {.verbose = 2}, nn::callbacks::TensorBoard{"logs"});
///
/// The checkpoints may come from a CheckpointManager, the callbacks ModelCheckpoint ("checkpoints/ckpt_{epoch}")
/// and BackupAndRestore, or elsewhere. They must have a model as part "model", or a network and an optimizer as parts
/// "network" and "optimizer". The evaluator restores the network and, for the callbacks, the optimizer's number of
/// steps; the optimizer and the metrics of `model` may differ from the saved ones.
///
/// The training ends the evaluator by `mark_training_ended(folder)`; `train_and_evaluate` does so. Incomplete
/// checkpoints are ignored. A checkpoint that is damaged, or removed during reading, is skipped until it is readable;
/// the evaluator takes the previous one if unseen.
///
/// Refers to the model. `evaluate_new` and `run` are collective calls of the processes of the model's strategy, which
/// is separate from the training's.
template <class M>
class SidecarEvaluator {
  static_assert(detail::is_model<M>,
                "the first argument of a side-car evaluator must be the nn::Model to evaluate: nn::SidecarEvaluator "
                "evaluator{model, \"checkpoints\"}");

 public:
  /// Throws InvalidArgument if `max_evaluations` is 0, or if `poll` is not positive.
  SidecarEvaluator(M& model, std::string folder, const SidecarEvaluatorOptions& options = {})
      : model_(model), folder_(std::move(folder)), options_(options) {
    if (options_.max_evaluations == std::uint64_t{0})
      throw InvalidArgument("SidecarEvaluatorOptions.max_evaluations is out of range", "it is 0", "Give 1 or more");
    if (options_.poll.count() <= 0)
      throw InvalidArgument("SidecarEvaluatorOptions.poll is out of range", "it is not positive",
                            "Give the time between two polls, such as std::chrono::seconds{1}");
  }

  /// Evaluates the newest unseen checkpoint, if any. Throws FileError if the folder cannot be read, or if a checkpoint
  /// lacks an optimizer's `iterations`, ShapeMismatch if it has another network, and like Model::evaluate.
  template <class Dataset, class... Given>
  std::optional<Logs> evaluate_new(const Dataset& dataset, const EvaluateOptions& evaluate, Given&&... callbacks) {
    const std::vector<dist::detail::FoundCheckpoint> found =
        dist::detail::run_collectively(strategy(), [&] { return dist::detail::checkpoints_in(folder_); });
    auto reader = open_unseen(found);
    if (!reader) return std::nullopt;
    serial_ = reader->manifest().serial;
    evaluated_ = reader->folder();
    seen_.clear();
    for (const auto& each : found)
      if (each.serial <= serial_) seen_.push_back(each.id);
    restore(std::move(reader));
    if (evaluate.verbose != 0 && model_.is_chief()) evaluate.console.write(concat("Evaluating ", evaluated_, "\n"));
    return model_.evaluate(dataset, evaluate, callbacks...);
  }

  /// Evaluates new checkpoints until the training or the options end it. Returns the logs of the last evaluation, if
  /// any. `callbacks` are passed to Model::evaluate: TensorBoard writes `evaluation_<name>_vs_iterations` (spec Q22).
  /// Throws DeadlineExceeded if no checkpoint appears within `options.timeout`, and like `evaluate_new`.
  template <class Dataset, class... Given>
  std::optional<Logs> run(const Dataset& dataset, const EvaluateOptions& evaluate, Given&&... callbacks) {
    std::optional<Logs> last;
    std::optional<Waiting> waiting;
    for (int late_looks = 0; late_looks < max_late_looks;) {
      // Read before the evaluation, so that the last checkpoint before the end is evaluated.
      const bool has_ended = detail::is_training_ended(strategy(), folder_, options_.epochs);
      if (std::optional<Logs> logs = evaluate_new(dataset, evaluate, callbacks...)) {
        last = std::move(logs);
        if (options_.max_evaluations && serial_ >= *options_.max_evaluations) break;
        waiting.reset();
        continue;
      }
      if (has_ended && !is_one_unreadable_) break;
      if (has_ended) ++late_looks;
      wait(waiting);
    }
    return last;
  }
  /// Evaluates with a line of output per checkpoint.
  template <class Dataset>
  std::optional<Logs> run(const Dataset& dataset) {
    return run(dataset, EvaluateOptions{.verbose = 2});
  }

  /// The path of the last evaluated checkpoint; empty before the first.
  [[nodiscard]] const std::string& evaluated() const noexcept { return evaluated_; }

 private:
  using Reader = dist::detail::CheckpointReader;
  /// The start of a wait for a checkpoint, and the time of its last message.
  struct Waiting {
    std::int64_t since, told;
  };

  /// The number of further checks for an unreadable checkpoint after the end of the training.
  static constexpr int max_late_looks = 5;

  [[nodiscard]] auto& strategy() const { return model_.strategy(); }

  /// Opens the newest unseen and complete checkpoint of `found`, the same in all processes.
  std::unique_ptr<Reader> open_unseen(const std::vector<dist::detail::FoundCheckpoint>& found) {
    const auto has = [](const std::vector<std::uint64_t>& ids, std::uint64_t id) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    std::vector<std::uint64_t> unreadable;
    is_one_unreadable_ = false;
    for (;;) {
      const std::uint64_t id = dist::detail::broadcast_from_chief(strategy(), [&]() -> std::uint64_t {
        for (auto each = found.rbegin(); each != found.rend(); ++each)
          if (!has(seen_, each->id) && !has(unreadable, each->id)) return each->id;
        return 0;
      });
      if (id == 0) return nullptr;
      std::unique_ptr<Reader> reader;
      for (const auto& each : found) {
        if (each.id != id) continue;
        try {
          reader = std::make_unique<Reader>(each.path);
          reader->verify();
        } catch (const FileError& error) {
          reader.reset();
          // The training removes old checkpoints, which needs no message.
          if (dist::detail::is_checkpoint(each.path) && !has(told_, id)) {
            told_.push_back(id);
            log_line(concat("checkpoint ", each.path, " is skipped: ", error.what()));
          }
        }
      }
      if (!dist::detail::any_process(strategy(), !reader)) return reader;
      unreadable.push_back(id);
      is_one_unreadable_ = true;
    }
  }

  void restore(std::unique_ptr<Reader> reader) {
    std::int64_t count = 0;
    detail::SavedIterations optimizer{count};
    detail::EvaluatedParts<std::remove_reference_t<decltype(model_.network())>> model{model_.network(), optimizer};
    Checkpoint checkpoint{strategy()};
    if (reader->find("model/optimizer/iterations") != nullptr)
      checkpoint.add("model", model);
    else if (reader->find("optimizer/iterations") != nullptr)
      checkpoint.add("network", model.network).add("optimizer", optimizer);
    else
      throw FileError(reader->folder(), "is a checkpoint without the iterations of an optimizer",
                      io::listed_names(reader->keys()),
                      "Save the model as part \"model\", or its network and its optimizer as parts \"network\" and "
                      "\"optimizer\"");
    checkpoint.restore(std::move(reader));
    model_.optimizer().set_iterations(strategy().scope(), count);
  }

  /// Waits until the next check. Begins a wait if `waiting` is empty.
  void wait(std::optional<Waiting>& waiting) const {
    const auto awaited = [&] {
      return concat("a checkpoint in ", quoted(folder_),
                    evaluated_.empty() ? "" : concat(" after ", quoted(evaluated_)));
    };
    const std::int64_t now = dist::detail::monotonic_nanoseconds();
    if (!waiting) waiting = {now, now};
    const std::int64_t waited = now - waiting->since;
    const bool is_overdue = dist::detail::broadcast_from_chief(strategy(), [&] {
      if (now - waiting->told >= options_.tell_after.count()) {
        waiting->told = now;
        log_line(concat("the evaluator has waited ", waited / 1'000'000'000, " s for ", awaited()));
      }
      return options_.timeout.count() > 0 && waited > options_.timeout.count();
    });
    if (is_overdue)
      throw DeadlineExceeded(
          concat("The evaluator waited too long for ", awaited()),
          concat("none was saved in ", options_.timeout, ", and the training is not marked as ended"),
          "Check that the training runs and saves there, increase SidecarEvaluatorOptions.timeout, or call "
          "dist::mark_training_ended when the training ends");
    std::this_thread::sleep_for(options_.poll);
  }

  M& model_;
  std::string folder_;
  SidecarEvaluatorOptions options_;
  std::uint64_t serial_ = 0;         // of the last evaluated checkpoint
  std::string evaluated_;            // its path
  std::vector<std::uint64_t> seen_;  // it and the older ones in the folder
  std::vector<std::uint64_t> told_;  // the unreadable ones, already reported
  bool is_one_unreadable_ = false;   // of those found by the last check
};

}  // namespace dist::nn
