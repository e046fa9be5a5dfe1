#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/tf_config.hpp>
#include <dist/cluster/tf_config_resolver.hpp>

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

/// The cluster of a Vertex AI custom job, from CLUSTER_SPEC: workerpool0 is the chief, workerpool1 the workers, 2 the
/// parameter servers, 3 the evaluators. Where Vertex AI sets TF_CONFIG too, both say the same.
class VertexResolver {
 public:
  explicit VertexResolver(Environment environment = Environment{}) : environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const { return config().cluster; }
  [[nodiscard]] std::optional<Task> task() const { return detail::task_of(config(), {}, describe()); }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "CLUSTER_SPEC"; }

 private:
  [[nodiscard]] TfConfig config() const {
    const std::optional<std::string> written = environment_.get("CLUSTER_SPEC");
    if (!written || written->empty()) return {};
    return detail::TfConfigReader{"CLUSTER_SPEC", {detail::worker_pool_named, "workerpool0 to workerpool3"}}.read(
        *written);
  }

  Environment environment_;
};

}  // namespace dist
