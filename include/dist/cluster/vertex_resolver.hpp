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

/// The cluster of a Vertex AI custom job, from CLUSTER_SPEC: workerpool0 is the chief, workerpool1 the workers, 2 the
/// parameter servers, 3 the evaluators. Where Vertex AI sets TF_CONFIG too, both say the same.
class VertexResolver {
 public:
  explicit VertexResolver(Environment environment = Environment{}) : environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "CLUSTER_SPEC"; }

 private:
  [[nodiscard]] TfConfig config() const;

  Environment environment_;
};

}  // namespace dist

#ifndef DIST_COMPILED_MPI
#include <dist/cluster/vertex_resolver.ipp>
#endif
