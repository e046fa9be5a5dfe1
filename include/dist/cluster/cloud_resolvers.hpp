#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/tf_config_resolver.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The cluster of a Vertex AI custom job, from CLUSTER_SPEC: workerpool0 is the chief, 1 the workers, 2 the parameter
/// servers, 3 the evaluators. TF_CONFIG, if set, describes the same cluster.
class VertexResolver : public TfConfigResolver {
 public:
  /// `environment` contains CLUSTER_SPEC, and TF_CONFIG if set.
  explicit VertexResolver(Environment environment = Environment{});
};

/// The hosts of a SageMaker training job, one worker each, sorted by name (spec M21). SM_HOSTS is a JSON list that
/// contains SM_CURRENT_HOST.
class SageMakerResolver {
 public:
  /// All hosts listen at `port`.
  explicit SageMakerResolver(std::uint16_t port = 2223, Environment environment = Environment{})
      : port_(port), environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return "SM_HOSTS"; }

 private:
  [[nodiscard]] std::string require(const char* name) const;

  [[nodiscard]] std::vector<std::string> hosts() const;

  std::uint16_t port_;
  Environment environment_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/cloud_resolvers.ipp>
#endif
