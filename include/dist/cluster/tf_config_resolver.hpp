#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/tf_config.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// Takes the place of what a resolver found.
struct TaskOverride {
  std::optional<TaskType> type{};
  std::optional<std::size_t> index{};
};

namespace detail {

/// The task of `config`, where `given` counts more. None without a type; a type needs an index.
[[nodiscard]] inline std::optional<Task> task_of(const TfConfig& config, const TaskOverride& given,
                                                 std::string_view source) {
  const std::optional<TaskType> type = given.type ? given.type : config.type;
  const std::optional<std::size_t> index = given.index ? given.index : config.index;
  if (!type && !index) return std::nullopt;
  if (!type || !index)
    throw InvalidArgument(text(source, " does not say which task this process is"),
                          type ? text("task.type is '", to_string(*type), "', and task.index is missing")
                               : text("task.index is ", *index, ", and task.type is missing"),
                          "Write both, such as {\"type\": \"worker\", \"index\": 0}");
  return Task{*type, *index};
}

}  // namespace detail

/// The cluster that TF_CONFIG describes. The variable is read at each call, so a change is seen; without it there is no
/// cluster (spec M01, M02, M04).
class TfConfigResolver {
 public:
  explicit TfConfigResolver(TaskOverride given = {}, Environment environment = Environment{})
      : given_(given), environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const { return config().cluster; }
  [[nodiscard]] std::optional<Task> task() const { return detail::task_of(config(), given_, describe()); }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "TF_CONFIG"; }

 private:
  [[nodiscard]] TfConfig config() const {
    const std::optional<std::string> written = environment_.get("TF_CONFIG");
    return written && !written->empty() ? parse_tf_config(*written) : TfConfig{};
  }

  TaskOverride given_;
  Environment environment_;
};

}  // namespace dist
