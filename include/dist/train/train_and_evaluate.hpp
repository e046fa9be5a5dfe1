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
#include <dist/cluster/roles.hpp>
#include <dist/cluster/task.hpp>
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

template <class M>
struct TrainAndEvaluateOptions {
  /// The folder of the checkpoints, which all tasks reach.
  std::string folder;
  /// How it trains, and how it shows what it does. `validation_steps` are the batches of each evaluation; the dataset for it
  /// is the function's argument, not `validation`.
  FitOptions<M> fit = {};
  /// Whether a cluster has an evaluator. Where it has none, its chief and workers evaluate after each epoch, all together, as
  /// processes of no cluster do.
  bool has_evaluator = true;
  /// A checkpoint after every so many batches instead of after each epoch.
  std::optional<std::size_t> save_freq = std::nullopt;
  /// Whether SIGTERM ends the training after the batch, with a checkpoint, as BackupAndRestoreOptions has it.
  bool save_before_preemption = false;
  /// How the evaluator follows the checkpoints; it ends with the training to `fit.epochs`.
  SidecarEvaluatorOptions evaluator = {};
};

struct TrainAndEvaluateResult {
  /// The epochs that this call trained; with "val_" entries where the task evaluated, too. Empty in the evaluator.
  History history = {};
  /// The logs of the last evaluation; none where others evaluate, and none in the evaluator of a training without a
  /// checkpoint.
  std::optional<Logs> evaluation = std::nullopt;
  /// Whether the training was interrupted because a process was told to end. The program then returns 42, so that whoever
  /// started it starts it again.
  bool is_preempted = false;
};

namespace detail {

/// A strategy that knows which task of a cluster it is.
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
    throw InvalidArgument("train_and_evaluate was called by a parameter server", to_string(*task),
                          "Start chief, workers and an evaluator; the variables are with the workers");
  if (task->type == TaskType::evaluator) return {.trains = false, .evaluates = true};
  return {.trains = true, .evaluates = !has_evaluator};
}

/// The role of the task that a resolver says. Throws unless the cluster could work, and the strategy is for such a task.
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
      throw WrongStrategy("The strategy is of another task than train_and_evaluate is to do",
                          concat("it is ", of_strategy ? to_string(*of_strategy) : "of no cluster", ", and ",
                                 resolver.describe(), " says ", task ? to_string(*task) : "nothing"),
                          "Give both the same resolver");
  }
  const std::size_t tasks = sync_tasks(cluster).size();
  const std::size_t processes = strategy.num_replicas_in_sync() / strategy.num_local_replicas();
  if (task && role.trains && tasks != processes)
    throw WrongStrategy(
        concat("Tasks that train together have a strategy of another number of processes: ", strategy.describe()),
        concat(tasks, tasks == 1 ? " task trains" : " tasks train", ", this one is ", to_string(*task)),
        "Give chief and workers a MultiWorker");
  return role;
}

/// The logs of the validation after the last epoch; none where there was none.
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
                          "Give one that all tasks reach: {.folder = \"checkpoints\"}");
  if (options.fit.validation)
    throw InvalidArgument("train_and_evaluate was given two datasets to evaluate on",
                          "TrainAndEvaluateOptions.fit.validation stands beside its argument",
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
  // A training that has ended, perhaps before its last epoch, does not go on.
  if (is_training_ended(model.strategy(), options.folder, epochs)) options.fit.epochs = 0;
  if (role.evaluates) options.fit.validation = test;
  nn::callbacks::BackupAndRestore backup{options.folder,
                                         {.save_freq = options.save_freq,
                                          .save_before_preemption = options.save_before_preemption,
                                          .delete_checkpoint = false}};
  result.history = model.fit(train, std::move(options.fit), callbacks..., backup);  // saves what callbacks have changed
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

/// Trains a model and evaluates it, each task of a job what it is there for (the Estimator's train_and_evaluate):
///
///     dist::MultiWorker<dist::RingAllReduce> strategy;  // the workers of TF_CONFIG, or an evaluator alone
///     …
///     nn::train_and_evaluate(model, train, test, {.folder = "checkpoints", .fit = {.epochs = 12}});
///
/// - Chief and workers fit the model to `train`, and save it in `options.folder` after each epoch. They go on from the newest
///   checkpoint there, so that a job which is started again ends with the bits of one that nothing interrupted.
/// - The evaluator, which runs alone, evaluates the newest checkpoint on `test` again and again until the training has ended
///   (SidecarEvaluator, spec Q27).
/// - Processes of no cluster, such as mpirun's, do both in turns: an epoch, and an evaluation.
///
/// `callbacks` are those of Model::fit and Model::evaluate, whichever the task calls. The task is what TF_CONFIG says, or a
/// resolver that comes first among the arguments. The datasets are batched.
///
/// Throws InvalidArgument for a cluster that cannot work, a parameter server, no folder, and `options.fit.validation`;
/// WrongStrategy for a strategy of another task, or of another number of processes than there are chief and workers; as
/// Model::fit, BackupAndRestore and SidecarEvaluator::run do.
template <ClusterResolver R, class M, class Train, class Test, class... Given>
TrainAndEvaluateResult train_and_evaluate(const R& resolver, M& model, const Train& train, const Test& test,
                                          TrainAndEvaluateOptions<M> options, Given&&... callbacks) {
  static_assert(detail::is_model<M>,
                "train_and_evaluate takes an nn::Model, a dataset to train on, one to evaluate on, and options: "
                "nn::train_and_evaluate(model, train, test, {.folder = \"checkpoints\"})");
  const detail::TaskRole role = detail::role_of(resolver, model.strategy(), options.has_evaluator);
  return detail::train_and_evaluate(role, model, train, test, std::move(options), callbacks...);
}
template <class M, class Train, class Test, class... Given>
TrainAndEvaluateResult train_and_evaluate(M& model, const Train& train, const Test& test,
                                          TrainAndEvaluateOptions<M> options, Given&&... callbacks) {
  return train_and_evaluate(TfConfigResolver{}, model, train, test, std::move(options), callbacks...);
}

}  // namespace dist::nn
