#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/tf_config.hpp>
#include <dist/core/config.hpp>

namespace dist {

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
