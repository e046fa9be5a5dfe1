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

namespace detail {

/// The task of `config`, where `given` counts more. None without a type; a type needs an index.
[[nodiscard]] std::optional<Task> task_of(const TfConfig& config, const TaskOverride& given, std::string_view source);

}  // namespace detail

/// The cluster that TF_CONFIG describes. The variable is read at each call, so a change is seen; without it there is no
/// cluster (spec M01, M02, M04).
class TfConfigResolver {
 public:
  explicit TfConfigResolver(TaskOverride given = {}, Environment environment = Environment{})
      : given_(given), environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "TF_CONFIG"; }

 private:
  [[nodiscard]] TfConfig config() const;

  TaskOverride given_;
  Environment environment_;
};

}  // namespace dist

#ifndef DIST_COMPILED_MPI
#include <dist/cluster/tf_config_resolver.ipp>
#endif
