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

DIST_INLINE_MPI ClusterSpec TfConfigResolver::cluster_spec() const { return config().cluster; }

DIST_INLINE_MPI std::optional<Task> TfConfigResolver::task() const {
  const TfConfig found = config();
  const std::optional<TaskType> type = given_.type ? given_.type : found.type;
  const std::optional<std::size_t> index = given_.index ? given_.index : found.index;
  if (!type && !index) return std::nullopt;
  if (!type || !index)
    throw InvalidArgument(text(variable_, " does not say which task this process is"),
                          type ? text("task.type is '", to_string(*type), "', and task.index is missing")
                               : text("task.index is ", *index, ", and task.type is missing"),
                          "Write both, such as {\"type\": \"worker\", \"index\": 0}");
  return Task{*type, *index};
}

DIST_INLINE_MPI TfConfig TfConfigResolver::config() const {
  const std::optional<std::string> written = environment_.get(variable_);
  return written && !written->empty() ? parse_tf_config(*written, variable_, names_) : TfConfig{};
}

}  // namespace dist
