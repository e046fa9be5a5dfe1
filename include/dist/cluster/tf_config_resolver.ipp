#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/tf_config.hpp>
#include <dist/cluster/tf_config_resolver.hpp>
#include <dist/core/error.hpp>

namespace dist {

namespace detail {

DIST_INLINE_MPI std::optional<Task> task_of(const TfConfig& config, const TaskOverride& given,
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

DIST_INLINE_MPI ClusterSpec TfConfigResolver::cluster_spec() const { return config().cluster; }

DIST_INLINE_MPI std::optional<Task> TfConfigResolver::task() const {
  return detail::task_of(config(), given_, describe());
}

DIST_INLINE_MPI TfConfig TfConfigResolver::config() const {
  const std::optional<std::string> written = environment_.get("TF_CONFIG");
  return written && !written->empty() ? parse_tf_config(*written) : TfConfig{};
}

}  // namespace dist
