/// The loops of Model over batches, independent of the types of the model and the dataset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <dist/context/any_strategy.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/any_pass.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/history.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/measurements.hpp>
#include <dist/train/progress_bar.hpp>

namespace dist::nn::detail {

/// The passes over a dataset, and the step for each batch. Refers to the dataset.
class LoopSteps {
 public:
  explicit LoopSteps(const data::detail::AnyDataset& dataset) : dataset_(dataset), batch_(dataset.element()) {}
  LoopSteps(const LoopSteps&) = delete;
  LoopSteps& operator=(const LoopSteps&) = delete;

  [[nodiscard]] data::Cardinality cardinality() const { return dataset_.cardinality(); }
  /// Begins a pass after its first `position` batches.
  void begin(std::uint64_t epoch, std::uint64_t position = 0);
  /// Reads the next batch. Returns false at the end.
  bool next() { return pass_->next(batch_.get()); }
  /// Runs the step for the current batch.
  virtual void run() = 0;

 protected:
  ~LoopSteps() = default;
  [[nodiscard]] void* batch() noexcept { return batch_.get(); }

 private:
  const data::detail::AnyDataset& dataset_;
  std::unique_ptr<data::detail::AnyPass> pass_;
  data::detail::AnyElement batch_;
};

/// The options of a fit that its loop uses.
struct FitPlan {
  std::size_t epochs;
  std::size_t initial_epoch;
  std::optional<std::size_t> steps_per_epoch;
  std::size_t steps_per_execution;
  std::size_t validation_freq;
  bool validates;
  bool (*callbacks_may_log)(std::string_view name) = nullptr;
};

/// The start of a fit: an epoch, and its number of completed steps.
struct FitPosition {
  std::size_t epoch = 0;
  std::size_t step = 0;
};

/// The state of a fit that callbacks read and change.
struct FitState {
  std::size_t epochs_trained = 0;
  bool validates = false;
  bool (*callbacks_may_log)(std::string_view name) = nullptr;
  bool stops = false;              // after this epoch
  bool stops_after_batch = false;  // after this batch, in all processes
  bool stops_here = false;         // after this batch, without logs of the epoch
  FitPosition begins_at;

  void begin(const FitPlan& plan);
};

/// The model to fit. Refers to its parts.
struct FittedModel {
  FitState& state;
  Measurements& trained;
  const dist::detail::AnyStrategy& strategy;
  dist::detail::FunctionRef<Logs(TestCallback&)> validate;
  dist::detail::FunctionRef<void()> finalize_optimizer;
};

/// One fit: calls callbacks, the progress bar and the history, and runs the model's steps.
class FitLoop {
 public:
  FitLoop(const FitPlan& plan, const FittedModel& model, const FitCallback& callbacks,
          const TestCallback& of_validation, ProgressCallback progress);
  ~FitLoop();
  FitLoop(const FitLoop&) = delete;
  FitLoop& operator=(const FitLoop&) = delete;

  /// Trains on the passes of a dataset. Throws InvalidArgument if the dataset has no batches, or is infinite and the
  /// plan has no steps_per_epoch. Exceptions of steps and callbacks propagate.
  History run(LoopSteps& steps);
  /// Trains by a function that runs all `steps` of an epoch.
  History run(std::size_t steps, dist::detail::FunctionRef<void()> take_steps);

 private:
  void begin();
  void begin_epoch(const Epoch& epoch);
  /// Adds the logs of the validation, if the epoch has one.
  void end_epoch(const Epoch& epoch);
  History end();
  /// Trains from step `first` to step `wanted` or the end of the pass. Returns the step at which it ended.
  std::size_t train_epoch(LoopSteps& steps, std::size_t first, std::optional<std::size_t> wanted);
  void tell_of_batches(std::size_t last);
  void warn_of_end_of_data(std::size_t epoch, std::size_t steps) const;

  FitPlan plan_;
  FittedModel model_;
  FitState& state_;
  FitCallback callbacks_;
  TestCallback of_validation_;
  ProgressCallback progress_;
  History history_;
  Logs logs_;
};

/// Returns the logs of one pass over at most `wanted` batches, measured by their steps. `progress` may be nullptr.
Logs evaluate(LoopSteps& steps, Measurements& tested, std::optional<std::size_t> wanted, ProgressCallback* progress,
              TestCallback callbacks);

/// Runs the steps of one pass over at most `wanted` batches. Returns their number.
std::size_t predict(LoopSteps& steps, std::optional<std::size_t> wanted, PredictCallback callbacks,
                    ProgressCallback& progress);

/// Returns the number of batches of a pass, or nothing if unknown (spec Q05). Throws InvalidArgument if it is infinite,
/// unless the loop `has_end`.
[[nodiscard]] std::optional<std::size_t> batches_of(data::Cardinality cardinality, bool has_end);
void require_batches(std::size_t steps);

/// Throws InvalidArgument if a number that must be positive is 0.
void require_counts(const FitPlan& plan, std::optional<std::size_t> validation_steps);
/// Returns the number of steps of an epoch under a ParameterServer. Throws InvalidArgument for options that are not
/// supported there.
[[nodiscard]] std::size_t steps_to_schedule(const FitPlan& plan, std::optional<std::size_t> validation_steps,
                                            std::optional<int> verbose);
void refuse_options_of_arrays(bool given, std::string_view who);
void require_validation_split(double split);
void refuse_two_validations();
void refuse_several_processes(std::string_view who, std::string_view strategy);

}  // namespace dist::nn::detail

#ifndef DIST_COMPILED
#include <dist/train/fit_loop.ipp>
#endif
