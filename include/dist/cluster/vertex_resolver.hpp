#pragma once

#include <dist/cluster/environment.hpp>
#include <dist/cluster/tf_config_resolver.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The cluster of a Vertex AI custom job, from CLUSTER_SPEC: workerpool0 is the chief, workerpool1 the workers, 2 the
/// parameter servers, 3 the evaluators. Where Vertex AI sets TF_CONFIG too, both say the same.
class VertexResolver : public TfConfigResolver {
 public:
  explicit VertexResolver(Environment environment = Environment{});
};

}  // namespace dist

#ifndef DIST_COMPILED_MPI
#include <dist/cluster/vertex_resolver.ipp>
#endif
