/// Reads TF_CONFIG, in all variants that schedulers write:
///
///   {"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "c:2222"]}, "task": {"type": "worker", "index": 0}}
///
/// A job may be a map from index to address. The cluster may be named sparseCluster (Kubeflow), the chief "master"
/// (SageMaker, AI Platform), and an index may be a string of digits. Other keys, such as environment and rpc_layer, are
/// ignored (spec M01).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The content of TF_CONFIG; a cluster without tasks is a single process (spec M04).
struct TfConfig {
  ClusterSpec cluster;                 ///< tasks and addresses
  std::optional<TaskType> type{};      ///< type of this process's task
  std::optional<std::size_t> index{};  ///< index of this process's task
};

namespace detail {

/// A scheduler's names of jobs, and their list for messages.
struct JobNames {
  std::optional<TaskType> (*type_named)(std::string_view name) = task_type_named;
  std::string_view allowed = "chief, worker, ps and evaluator";
};

}  // namespace detail

/// Parses TF_CONFIG; messages name `source`. Throws InvalidArgument for an unsupported form. `validate_cluster` checks
/// addresses and task.
[[nodiscard]] TfConfig parse_tf_config(std::string_view written, std::string_view source = "TF_CONFIG",
                                       detail::JobNames names = {});

/// Replaces the task that a resolver detected.
struct TaskOverride {
  std::optional<TaskType> type{};      ///< not set: the detected type
  std::optional<std::size_t> index{};  ///< not set: the detected index
};

/// The cluster in TF_CONFIG, which is read at each call; empty if it is not set (spec M01, M02, M04).
class TfConfigResolver {
 public:
  /// `given` overrides the task in TF_CONFIG.
  explicit TfConfigResolver(TaskOverride given = {}, Environment environment = Environment{})
      : TfConfigResolver("TF_CONFIG", {}, given, std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  /// Empty without a type. Throws InvalidArgument for a type without an index.
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return variable_; }

 protected:
  /// Reads another variable, with the given job names.
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

#ifndef DIST_COMPILED
#include <dist/cluster/tf_config_resolver.ipp>
#endif
