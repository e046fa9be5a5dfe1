#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/checkpoint/folder.hpp>
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/tf_config_resolver.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/train/callbacks/backup_and_restore.hpp>
#include <dist/train/fit_options.hpp>
#include <dist/train/history.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/sidecar_evaluator.hpp>

namespace dist::nn {

/// The options of train_and_evaluate.
template <class M>
struct TrainAndEvaluateOptions {
  /// The folder of the checkpoints, accessible to all tasks.
  std::string folder;
  /// The options of the training and its output. `validation_steps` is the number of batches of each evaluation; its
  /// dataset is the function's argument, not `validation`.
  FitOptions<M> fit = {};
  /// True if the cluster has an evaluator. Otherwise chief and workers evaluate together after each epoch, like
  /// processes without a cluster.
  bool has_evaluator = true;
  /// The number of batches between checkpoints. Default: after each epoch.
  std::optional<std::size_t> save_freq = std::nullopt;
  /// True to end the training on SIGTERM after the batch, with a checkpoint, see BackupAndRestoreOptions.
  bool save_before_preemption = false;
  /// The options of the evaluator; it ends with the training to `fit.epochs`.
  SidecarEvaluatorOptions evaluator = {};
};

/// The result of train_and_evaluate.
struct TrainAndEvaluateResult {
  /// The epochs of this call, with "val_" entries if the task also evaluated. Empty in the evaluator.
  History history = {};
  /// The logs of the last evaluation; empty if other tasks evaluate, or if an evaluator found no checkpoint.
  std::optional<Logs> evaluation = std::nullopt;
  /// True if the training was interrupted because a process received SIGTERM. The program should then return 42, to be
  /// restarted.
  bool is_preempted = false;
};

namespace detail {

/// A strategy with information about its task in a cluster.
template <class S>
concept KnowsTask = requires(const S& strategy) {
  { strategy.task() } -> std::convertible_to<const std::optional<Task>&>;
};

struct TaskRole {
  bool trains = true;
  bool evaluates = true;
};
inline TaskRole role_of(const std::optional<Task>& task, bool has_evaluator) {
  if (!task) return {};
  if (task->type == TaskType::parameter_server)
    throw InvalidArgument("A parameter server called train_and_evaluate", to_string(*task),
                          "Start a chief, workers and an evaluator; the workers hold the variables");
  if (task->type == TaskType::evaluator) return {.trains = false, .evaluates = true};
  return {.trains = true, .evaluates = !has_evaluator};
}

/// Returns the role of the resolver's task. Throws if the cluster is invalid, or if the strategy does not match the
/// task.
template <class S>
TaskRole role_of(const ClusterResolver auto& resolver, const S& strategy, bool has_evaluator) {
  const ClusterSpec cluster = resolver.cluster_spec();
  const std::optional<Task> task = resolver.task();
  validate_cluster(cluster, task, resolver.describe());
  const TaskRole role = role_of(task, has_evaluator);
  if constexpr (KnowsTask<S>) {
    const std::optional<Task>& of_strategy = strategy.task();
    const bool is_evaluator = of_strategy && of_strategy->type == TaskType::evaluator;
    if (is_evaluator == role.trains)
      throw WrongStrategy("The strategy belongs to a different task than the resolver of train_and_evaluate",
                          concat("its task is ", of_strategy ? to_string(*of_strategy) : "none", ", and ",
                                 resolver.describe(), " names ", task ? to_string(*task) : "none"),
                          "Give both the same resolver");
  }
  const std::size_t tasks = sync_tasks(cluster).size();
  const std::size_t processes = strategy.num_replicas_in_sync() / strategy.num_local_replicas();
  if (task && role.trains && tasks != processes)
    throw WrongStrategy(concat("The number of processes of the strategy differs from the number of tasks that train: ",
                               strategy.describe()),
                        concat(tasks, tasks == 1 ? " task trains" : " tasks train", ", this one is ", to_string(*task)),
                        "Give the chief and the workers a MultiWorker");
  return role;
}

/// Returns the logs of the validation after the last epoch, if there was one.
inline std::optional<Logs> last_validation(const History& history) {
  std::optional<Logs> logs;
  constexpr std::string_view of_validation = "val_";
  for (const History::Series& series : history.series()) {
    const std::string_view name = series.name;
    if (!name.starts_with(of_validation) || series.epochs.back() != history.epochs().back()) continue;
    if (!logs) logs.emplace();
    logs->set(name.substr(of_validation.size()), series.values.back());
  }
  return logs;
}

template <class M, class Train, class Test, class... Given>
TrainAndEvaluateResult train_and_evaluate(TaskRole role, M& model, const Train& train, const Test& test,
                                          TrainAndEvaluateOptions<M> options, Given&... callbacks) {
  if (options.folder.empty())
    throw InvalidArgument("train_and_evaluate was given no folder for checkpoints",
                          "TrainAndEvaluateOptions.folder is empty",
                          "Give one that all tasks can access: {.folder = \"checkpoints\"}");
  if (options.fit.validation)
    throw InvalidArgument("train_and_evaluate was given two datasets to evaluate on",
                          "TrainAndEvaluateOptions.fit.validation is set in addition to the argument",
                          "Leave out fit.validation");
  const std::uint64_t epochs = options.fit.epochs;
  const EvaluateOptions evaluate{.verbose = options.fit.verbose.value_or(1),
                                 .console = options.fit.console,
                                 .steps = options.fit.validation_steps};
  TrainAndEvaluateResult result;
  if (!role.trains) {
    options.evaluator.epochs = epochs;
    result.evaluation = SidecarEvaluator{model, options.folder, options.evaluator}.run(test, evaluate, callbacks...);
    return result;
  }
  // A training that has ended, possibly early, does not continue.
  if (is_training_ended(model.strategy(), options.folder, epochs)) options.fit.epochs = 0;
  if (role.evaluates) options.fit.validation = test;
  nn::callbacks::BackupAndRestore backup{options.folder,
                                         {.save_freq = options.save_freq,
                                          .save_before_preemption = options.save_before_preemption,
                                          .delete_checkpoint = false}};
  result.history = model.fit(train, std::move(options.fit), callbacks..., backup);  // last, to save the others' state
  result.is_preempted = backup.is_preempted();
  if (result.is_preempted) return result;
  if (role.evaluates) {
    result.evaluation = last_validation(result.history);
    if (!result.evaluation) result.evaluation = model.evaluate(test, evaluate, callbacks...);
  }
  if (model.is_chief()) mark_training_ended(options.folder, epochs);
  return result;
}

}  // namespace detail

/// Trains and evaluates a model; each task of a job has its part (the Estimator's train_and_evaluate):
///
///     dist::MultiWorker<dist::RingAllReduce> strategy;  // the workers of TF_CONFIG, or an evaluator alone
///     …
///     nn::train_and_evaluate(model, train, test, {.folder = "checkpoints", .fit = {.epochs = 12}});
///
/// - Chief and workers fit the model to `train`, and save it in `options.folder` after each epoch. They continue from
///   the newest checkpoint, so the results of a restarted job are bitwise identical to an uninterrupted one.
/// - The evaluator, a single process, evaluates the newest checkpoint on `test` repeatedly until the training ends
///   (SidecarEvaluator, spec Q27).
/// - Processes without a cluster, such as mpirun's, alternate epochs and evaluations.
///
/// `callbacks` are passed to Model::fit or Model::evaluate. The task is defined by TF_CONFIG, or by a resolver as first
/// argument. The datasets must be batched.
///
/// Throws InvalidArgument if the cluster is invalid, for a parameter server, without a folder, or if
/// `options.fit.validation` is given; WrongStrategy if the strategy belongs to another task or number of processes; and
/// like Model::fit, BackupAndRestore and SidecarEvaluator::run.
template <ClusterResolver R, class M, class Train, class Test, class... Given>
TrainAndEvaluateResult train_and_evaluate(const R& resolver, M& model, const Train& train, const Test& test,
                                          TrainAndEvaluateOptions<M> options, Given&&... callbacks) {
  static_assert(detail::is_model<M>,
                "train_and_evaluate takes an nn::Model, a dataset to train on, one to evaluate on, and options: "
                "nn::train_and_evaluate(model, train, test, {.folder = \"checkpoints\"})");
  const detail::TaskRole role = detail::role_of(resolver, model.strategy(), options.has_evaluator);
  return detail::train_and_evaluate(role, model, train, test, std::move(options), callbacks...);
}
/// Trains and evaluates the model in the task of TF_CONFIG.
template <class M, class Train, class Test, class... Given>
TrainAndEvaluateResult train_and_evaluate(M& model, const Train& train, const Test& test,
                                          TrainAndEvaluateOptions<M> options, Given&&... callbacks) {
  return train_and_evaluate(TfConfigResolver{}, model, train, test, std::move(options), callbacks...);
}

}  // namespace dist::nn
