#pragma once

#include <string_view>

#include <dist/cluster/address.hpp>
#include <dist/cluster/cloud_resolvers.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/json.hpp>

namespace dist {

namespace detail {

/// Returns the role of a worker pool.
[[nodiscard]] inline std::optional<TaskType> worker_pool_named(std::string_view name) noexcept {
  constexpr std::string_view stem = "workerpool";
  if (name.size() != stem.size() + 1 || !name.starts_with(stem)) return std::nullopt;
  const std::size_t pool = static_cast<std::size_t>(static_cast<unsigned char>(name.back())) - '0';
  return pool < task_types.size() ? std::optional(task_types[pool]) : std::nullopt;
}

}  // namespace detail

DIST_INLINE VertexResolver::VertexResolver(Environment environment)
    : TfConfigResolver("CLUSTER_SPEC", {detail::worker_pool_named, "workerpool0 to workerpool3"}, {},
                       std::move(environment)) {}

DIST_INLINE ClusterSpec SageMakerResolver::cluster_spec() const {
  ClusterSpec cluster;
  for (const std::string& host : hosts()) cluster.append(TaskType::worker, {to_string(Address{host, port_})});
  return cluster;
}

DIST_INLINE std::optional<Task> SageMakerResolver::task() const {
  const std::vector<std::string> all = hosts();
  const std::string mine = require("SM_CURRENT_HOST");
  const auto found = std::find(all.begin(), all.end(), mine);
  if (found == all.end())
    throw InvalidArgument("SM_CURRENT_HOST is not one of SM_HOSTS", concat("it is ", quoted(mine)),
                          "Pass both variables on as SageMaker set them");
  return Task{TaskType::worker, static_cast<std::size_t>(found - all.begin())};
}

DIST_INLINE std::string SageMakerResolver::require(const char* name) const {
  return environment_.require(name, "this is not a SageMaker environment",
                              "Start as a SageMaker training job, or use another resolver");
}

DIST_INLINE std::vector<std::string> SageMakerResolver::hosts() const {
  const io::Json json = io::parse_json(require("SM_HOSTS"), "SM_HOSTS");
  std::vector<std::string> names;
  const std::size_t count = json_array_size(json.get());  // 0 if the value is not an array
  for (std::size_t index = 0; index < count; ++index)
    if (const json_t* name = json_array_get(json.get(), index); json_is_string(name))
      names.emplace_back(io::string_in(name));
  if (names.empty() || names.size() != count)
    throw InvalidArgument("SM_HOSTS is not a list of host names",
                          concat("it is ", io::written_json(json.get()).substr(0, 200)),
                          "Write [\"algo-1\", \"algo-2\"]");
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace dist
