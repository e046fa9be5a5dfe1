/// Reads what TF_CONFIG holds, in all the forms that schedulers write:
///
///   {"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "c:2222"]}, "task": {"type": "worker", "index": 0}}
///
/// A job may be a map from index to address instead of a list, the cluster may be called sparseCluster (Kubeflow's
/// dynamic workers), the chief "master" (SageMaker, AI Platform), and an index may be a string of digits. Other keys,
/// such as environment and rpc_layer, are left alone (spec M01).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// What TF_CONFIG says. No tasks: a process on its own (spec M04).
struct TfConfig {
  ClusterSpec cluster;
  std::optional<TaskType> type{};
  std::optional<std::size_t> index{};
};

namespace detail {

/// The names that one scheduler gives to jobs, and what messages call these names.
struct JobNames {
  std::optional<TaskType> (*type_named)(std::string_view name) = task_type_named;
  std::string_view allowed = "chief, worker, ps and evaluator";
};

}  // namespace detail

/// Reads the text of TF_CONFIG, which `source` names in messages. Throws InvalidArgument for anything else than the
/// forms above; whether the addresses and the task make sense is for `validate_cluster`.
[[nodiscard]] TfConfig parse_tf_config(std::string_view written, std::string_view source = "TF_CONFIG",
                                       detail::JobNames names = {});

/// Takes the place of what a resolver found.
struct TaskOverride {
  std::optional<TaskType> type{};
  std::optional<std::size_t> index{};
};

/// The cluster that TF_CONFIG describes. The variable is read at each call, so a change is seen; without it there is no
/// cluster (spec M01, M02, M04).
class TfConfigResolver {
 public:
  explicit TfConfigResolver(TaskOverride given = {}, Environment environment = Environment{})
      : TfConfigResolver("TF_CONFIG", {}, given, std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  /// None without a type; a type needs an index, else throws InvalidArgument.
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return variable_; }

 protected:
  /// That of another variable, in which jobs have these names.
  TfConfigResolver(const char* variable, detail::JobNames names, TaskOverride given, Environment environment)
      : variable_(variable), names_(names), given_(given), environment_(std::move(environment)) {}

 private:
  [[nodiscard]] TfConfig config() const;

  const char* variable_;
  detail::JobNames names_;
  TaskOverride given_;
  Environment environment_;
};

}  // namespace dist

#ifndef DIST_COMPILED_MPI
#include <dist/cluster/tf_config_resolver.ipp>
#endif
