#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The hosts of a Cloud TPU, each of which runs this program as a worker (spec M22).
///
/// The options list them, or else the environment: KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS or TPU_NAME, like in tf.distribute;
/// TPU_PROCESS_ADDRESSES, if hosts run several processes; or TPU_WORKER_HOSTNAMES, set by Kubernetes. CLOUD_TPU_TASK_ID
/// or TPU_WORKER_ID is the number of this process. Without these variables, and for "local", the cluster is empty.
///
/// The name of a TPU, in TPU_NAME or TPU_CONFIG, is refused, because resolving it needs Google's services. Slices
/// outside Kubernetes must set the variables that libtpu reads with TPU_SKIP_MDS_QUERY, because the metadata server is
/// not queried.
class TpuResolver {
 public:
  /// Settings of a TpuResolver.
  struct Options {
    /// "local", or the addresses of the hosts: "grpc://10.0.0.1:8470,grpc://10.0.0.2:8470". Empty: use the environment.
    std::string tpu{};
    /// The port of a host's first process if libtpu's variables list the hosts; others use the following ports. libtpu
    /// itself uses the listed ports, 8471 and 8476.
    std::uint16_t port_base = 8482;
    std::optional<std::size_t> num_accelerators{};  ///< devices per process; not set: see `num_accelerators()`
  };

  TpuResolver() = default;
  /// `options` override the variables in `environment`.
  explicit TpuResolver(Options options, Environment environment = Environment{})
      : options_(std::move(options)), environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  [[nodiscard]] std::optional<Task> task() const;
  /// Devices per process: from the options, or the chips in TPU_VISIBLE_CHIPS or TPU_CHIPS_PER_PROCESS_BOUNDS, with two
  /// devices each if TPU_ACCELERATOR_TYPE is v2 or v3. Empty if unknown.
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const;
  /// TPU_ACCELERATOR_TYPE, such as "v4-16".
  [[nodiscard]] std::optional<std::string> accelerator_type() const { return value("TPU_ACCELERATOR_TYPE"); }
  [[nodiscard]] std::string describe() const { return origin().name; }

 private:
  /// The variable or option that lists the hosts, and its content.
  struct Origin {
    std::string name;
    std::vector<std::string> hosts = {};  ///< as given; empty for a single process
    bool is_of_libtpu = false;
  };

  [[nodiscard]] Origin origin() const;
  /// Throws InvalidArgument unless libtpu's variables are consistent.
  void require_agreement(const Origin& origin) const;
  /// Empty if the variable is unset or empty.
  [[nodiscard]] std::optional<std::string> value(const char* name) const;
  /// The product of the extents in a variable, or its predecessor: 8 for "2,4,1".
  [[nodiscard]] std::optional<std::size_t> product(const char* name, const char* former_name) const;

  Options options_{};
  Environment environment_{};
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/tpu_resolver.ipp>
#endif
