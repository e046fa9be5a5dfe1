#pragma once

#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/core/text.hpp>
#include <dist/train/fit_loop.hpp>

namespace dist::nn::detail {

DIST_INLINE void LoopSteps::begin(std::uint64_t epoch, std::uint64_t position) {
  pass_.reset();  // first, so that the next pass can reuse its memory on host and devices
  pass_ = dataset_.iterate(epoch, position);
}

DIST_INLINE void FitState::begin(const FitPlan& plan) {
  stops = stops_after_batch = stops_here = false;
  validates = plan.validates;
  callbacks_may_log = plan.callbacks_may_log;
  begins_at = {plan.initial_epoch, 0};
}

DIST_INLINE FitLoop::FitLoop(const FitPlan& plan, const FittedModel& model, const FitCallback& callbacks,
                             const TestCallback& of_validation, ProgressCallback progress)
    : plan_(plan),
      model_(model),
      state_(model.state),
      callbacks_(callbacks),
      of_validation_(of_validation),
      progress_(std::move(progress)) {}

DIST_INLINE_DEFAULT FitLoop::~FitLoop() = default;

DIST_INLINE History FitLoop::run(LoopSteps& steps) {
  const auto epochs_since = [](std::size_t first, std::size_t index) { return index - std::min(first, index); };
  const std::optional<std::size_t> known = batches_of(steps.cardinality(), plan_.steps_per_epoch.has_value());
  const std::optional<std::size_t> wanted = plan_.steps_per_epoch ? plan_.steps_per_epoch : known;
  if (plan_.steps_per_execution > 1 && !wanted)
    throw InvalidArgument("fit cannot determine where the groups of steps_per_execution end",
                          "the number of batches of the dataset is unknown", "Give fit steps_per_epoch, too");
  // If an epoch has another number of steps than a pass, the pass continues in the next epoch.
  const bool one_pass = plan_.steps_per_epoch && plan_.steps_per_epoch != known;

  begin();
  const FitPosition from = state_.begins_at;
  bool has_pass = false;
  std::optional<std::size_t> steps_of_epoch = wanted;
  for (std::size_t index = from.epoch; index < plan_.epochs && !state_.stops; ++index) {
    const std::size_t first = index == from.epoch ? from.step : 0;
    begin_epoch({index, plan_.epochs, steps_of_epoch});
    if (first == 0) model_.trained.reset();
    if (!has_pass || !one_pass) {
      const std::size_t epochs_before = one_pass ? epochs_since(plan_.initial_epoch, index) : 0;
      // The order of a pass depends only on its number: the epoch in which it began.
      steps.begin(state_.epochs_trained - std::min(epochs_before, state_.epochs_trained),
                  epochs_before * wanted.value_or(0) + first);
      has_pass = true;
    }
    const std::size_t end = train_epoch(steps, first, wanted);
    if (state_.stops_here || (end == 0 && state_.stops)) break;
    if (index == from.epoch) require_batches(end);
    if (end == 0 || (plan_.steps_per_epoch && end < *plan_.steps_per_epoch && !state_.stops)) {
      warn_of_end_of_data(index, end);
      state_.stops = true;
      if (end == 0) break;  // the previous epoch was the last one
    }
    steps_of_epoch = end;
    end_epoch({index, plan_.epochs, steps_of_epoch});
    state_.stops = model_.strategy.any_process(state_.stops);
  }
  if (!state_.stops_here) model_.finalize_optimizer();
  return this->end();
}

DIST_INLINE History FitLoop::run(std::size_t steps, dist::detail::FunctionRef<void()> take_steps) {
  begin();
  for (std::size_t index = state_.begins_at.epoch; index < plan_.epochs && !state_.stops; ++index) {
    const Epoch epoch{index, plan_.epochs, steps};
    begin_epoch(epoch);
    model_.trained.reset();
    take_steps();
    end_epoch(epoch);
  }
  model_.finalize_optimizer();
  return end();
}

DIST_INLINE void FitLoop::begin() {
  state_.begin(plan_);
  callbacks_.call<hooks::on_train_begin>();
}

DIST_INLINE void FitLoop::begin_epoch(const Epoch& epoch) {
  callbacks_.call_in<hooks::on_epoch_begin>(HookTurn::first, epoch);
  progress_.on_epoch_begin(epoch);
  callbacks_.call_in<hooks::on_epoch_begin>(HookTurn::last, epoch);
}

DIST_INLINE void FitLoop::end_epoch(const Epoch& epoch) {
  ++state_.epochs_trained;
  logs_ = model_.trained.read();
  if (state_.validates && (epoch.index + 1) % plan_.validation_freq == 0)
    for (const Logs::Entry& entry : model_.validate(of_validation_)) logs_.set("val_" + entry.name, entry.value);
  callbacks_.call_in<hooks::on_epoch_end>(HookTurn::first, epoch, logs_);
  progress_.on_epoch_end(epoch, logs_);
  history_.on_epoch_end(epoch, logs_);
  callbacks_.call_in<hooks::on_epoch_end>(HookTurn::last, epoch, logs_);
}

DIST_INLINE History FitLoop::end() {
  callbacks_.call<hooks::on_train_end>(logs_);
  return std::move(history_);
}

DIST_INLINE std::size_t FitLoop::train_epoch(LoopSteps& steps, std::size_t first, std::optional<std::size_t> wanted) {
  std::size_t step = first;
  std::size_t told = first;  // the last step reported to callbacks
  while ((!wanted || step < *wanted) && !state_.stops_after_batch && steps.next()) {
    if (step == told) {
      callbacks_.call<hooks::on_train_batch_begin>(step);
    }
    steps.run();
    ++step;
    if (step - told == plan_.steps_per_execution) {
      tell_of_batches(step - 1);
      told = step;
    }
  }
  if (step > told) tell_of_batches(step - 1);
  return step;
}

DIST_INLINE void FitLoop::tell_of_batches(std::size_t last) {
  const CurrentLogs logs = model_.trained.current();
  callbacks_.call_in<hooks::on_train_batch_end>(HookTurn::first, last, logs);
  progress_.on_train_batch_end(last, logs);
  callbacks_.call_in<hooks::on_train_batch_end>(HookTurn::last, last, logs);
}

DIST_INLINE void FitLoop::warn_of_end_of_data(std::size_t epoch, std::size_t steps) const {
  if (!model_.strategy.is_chief()) return;
  static constinit dist::detail::Warning data_ran_out;
  if (plan_.steps_per_epoch)
    data_ran_out.emit(concat(
        "fit ran out of data after ", (epoch - std::min(plan_.initial_epoch, epoch)) * *plan_.steps_per_epoch + steps,
        " batches and stops: give a dataset of ", *plan_.steps_per_epoch * (plan_.epochs - plan_.initial_epoch),
        " batches (repeat), or fewer steps_per_epoch or epochs"));
  else
    data_ran_out.emit(concat("fit stops, because the dataset has no batch in epoch ", epoch + 1,
                             ": give a dataset that restarts in each pass, or fewer epochs"));
}

DIST_INLINE Logs evaluate(LoopSteps& steps, Measurements& tested, std::optional<std::size_t> wanted,
                          ProgressCallback* progress, TestCallback callbacks) {
  const auto turn = tested.taken_by("evaluate");
  const std::optional<std::size_t> known = batches_of(steps.cardinality(), wanted.has_value());
  const std::optional<std::size_t> shown = wanted ? wanted : known;
  if (progress != nullptr) progress->on_test_begin(shown);
  callbacks.call<hooks::on_test_begin>(shown);
  tested.reset();
  steps.begin(0);
  std::size_t step = 0;
  for (; (!wanted || step < *wanted) && steps.next(); ++step) {
    callbacks.call<hooks::on_test_batch_begin>(step);
    steps.run();
    if (progress != nullptr) progress->on_test_batch_end(step, tested.current());
    callbacks.call<hooks::on_test_batch_end>(step, tested.current());
  }
  require_batches(step);
  const Logs& logs = tested.read();
  if (progress != nullptr) progress->on_test_end(step, logs);
  callbacks.call<hooks::on_test_end>(step, logs);
  return logs;
}

DIST_INLINE std::size_t predict(LoopSteps& steps, std::optional<std::size_t> wanted, PredictCallback callbacks,
                                ProgressCallback& progress) {
  steps.begin(0);
  std::size_t step = 0;
  for (; (!wanted || step < *wanted) && steps.next(); ++step) {
    callbacks.call<hooks::on_predict_batch_begin>(step);
    steps.run();
    callbacks.call_in<hooks::on_predict_batch_end>(HookTurn::first, step);
    progress.on_predict_batch_end(step);
    callbacks.call_in<hooks::on_predict_batch_end>(HookTurn::last, step);
  }
  require_batches(step);
  return step;
}

DIST_INLINE std::optional<std::size_t> batches_of(data::Cardinality cardinality, bool has_end) {
  if (cardinality.is_infinite() && !has_end)
    throw InvalidArgument("The dataset of fit or evaluate has no end", "its cardinality is infinite",
                          "Leave out repeat, give it a count, or set the number of steps");
  if (!cardinality.is_known()) return std::nullopt;
  return cardinality.count();
}

DIST_INLINE void require_batches(std::size_t steps) {
  if (steps == 0)
    throw InvalidArgument("The dataset of fit or evaluate has no batch", "it ended before the first",
                          "Give it at least one example, and batch before you repeat");
}

DIST_INLINE void require_counts(const FitPlan& plan, std::optional<std::size_t> validation_steps) {
  const auto require = [](bool holds, std::string_view name) {
    if (!holds) throw InvalidArgument(concat("FitOptions.", name, " is out of range"), "it is 0", "Give 1 or more");
  };
  require(plan.steps_per_epoch != std::size_t{0}, "steps_per_epoch");
  require(plan.steps_per_execution > 0, "steps_per_execution");
  require(validation_steps != std::size_t{0}, "validation_steps");
  require(plan.validation_freq > 0, "validation_freq");
}

DIST_INLINE std::size_t steps_to_schedule(const FitPlan& plan, std::optional<std::size_t> validation_steps,
                                          std::optional<int> verbose) {
  if (!plan.steps_per_epoch)
    throw InvalidArgument("fit under a ParameterServer needs the number of steps of an epoch",
                          "workers make their own datasets, so the number of batches is unknown",
                          "Give FitOptions.steps_per_epoch, the number of batches of all workers together");
  require_counts(plan, validation_steps);
  if (verbose == 1)
    throw InvalidArgument("fit under a ParameterServer cannot show a progress bar",
                          "verbose is 1, and the steps of workers are not reported one by one",
                          "Set FitOptions.verbose to 2 for one line per epoch, or to 0 for silence");
  return *plan.steps_per_epoch;
}

DIST_INLINE void refuse_options_of_arrays(bool given, std::string_view who) {
  if (given)
    throw InvalidArgument(concat(who, " was given options for arrays with a dataset"),
                          "batch_size, shuffle and validation_split are for arrays",
                          "Batch and shuffle the dataset: dataset | dist::data::shuffle(rows, seed) | "
                          "dist::data::batch(global_batch)");
}

DIST_INLINE void require_validation_split(double split) {
  if (!(split >= 0 && split < 1))
    throw InvalidArgument("FitOptions.validation_split is out of range", concat("it is ", split),
                          "Give a part of the examples, from 0 to below 1");
}

DIST_INLINE void refuse_two_validations() {
  throw InvalidArgument("fit was given validation and validation_split", "each of them defines the validation data",
                        "Leave out one of them");
}

DIST_INLINE void refuse_several_processes(std::string_view who, std::string_view strategy) {
  throw WrongStrategy(concat(who, " was called in one of several processes"), strategy,
                      "Call fit or evaluate, which divide a dataset among the processes (spec Q15)");
}

}  // namespace dist::nn::detail
