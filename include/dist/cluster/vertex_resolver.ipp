#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/tf_config_resolver.hpp>
#include <dist/cluster/vertex_resolver.hpp>

namespace dist {

namespace detail {

/// The worker pools of Vertex AI stand for roles by their position.
[[nodiscard]] inline std::optional<TaskType> worker_pool_named(std::string_view name) noexcept {
  constexpr std::string_view stem = "workerpool";
  if (name.size() != stem.size() + 1 || !name.starts_with(stem)) return std::nullopt;
  const std::size_t pool = static_cast<std::size_t>(static_cast<unsigned char>(name.back())) - '0';
  return pool < task_types.size() ? std::optional(task_types[pool]) : std::nullopt;
}

}  // namespace detail

DIST_INLINE_MPI VertexResolver::VertexResolver(Environment environment)
    : TfConfigResolver("CLUSTER_SPEC", {detail::worker_pool_named, "workerpool0 to workerpool3"}, {},
                       std::move(environment)) {}

}  // namespace dist
