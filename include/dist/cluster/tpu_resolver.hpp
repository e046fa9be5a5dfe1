#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The hosts of a Cloud TPU, each of which runs this program as a worker (spec M22).
///
/// They are those that the options name, or else the environment: KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS or TPU_NAME, as tf.distribute
/// reads them; TPU_PROCESS_ADDRESSES, where a host has several processes; or TPU_WORKER_HOSTNAMES, which Kubernetes sets. A process
/// is the one that CLOUD_TPU_TASK_ID or TPU_WORKER_ID numbers. Without these variables, and for "local", there is no cluster:
/// the process has the TPU of its machine for itself.
///
/// Google's services are not asked: the name of a TPU, in TPU_NAME or TPU_CONFIG, is no list of its hosts. Nor is the metadata
/// server, so that machines in a slice outside Kubernetes need the variables that libtpu reads when TPU_SKIP_MDS_QUERY is set.
class TpuResolver {
 public:
  struct Options {
    /// "local", or the addresses of the hosts, "grpc://10.0.0.1:8470,grpc://10.0.0.2:8470"; empty: what the environment says.
    std::string tpu{};
    /// Where the first process of a host listens if libtpu's variables name the hosts; the next ones listen at the following
    /// ports. Those that the variables name are libtpu's own, as are 8471 and 8476.
    std::uint16_t port_base = 8482;
    std::optional<std::size_t> num_accelerators{};
  };

  TpuResolver() = default;
  explicit TpuResolver(Options options, Environment environment = Environment{})
      : options_(std::move(options)), environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;
  [[nodiscard]] std::optional<Task> task() const;
  /// The devices of each process: those of the options, or the chips of a process, which TPU_VISIBLE_CHIPS or
  /// TPU_CHIPS_PER_PROCESS_BOUNDS say, with two devices each where TPU_ACCELERATOR_TYPE is v2 or v3. None where that is not said.
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const;
  /// TPU_ACCELERATOR_TYPE, such as "v4-16".
  [[nodiscard]] std::optional<std::string> accelerator_type() const { return value("TPU_ACCELERATOR_TYPE"); }
  [[nodiscard]] std::string describe() const { return origin().name; }

 private:
  /// What says where the hosts are, and what it says.
  struct Origin {
    std::string name;
    std::vector<std::string> hosts = {};  ///< as they are written; none for a process on its own
    bool is_of_libtpu = false;
  };

  [[nodiscard]] Origin origin() const;
  /// Throws InvalidArgument unless libtpu's variables agree with each other.
  void require_agreement(const Origin& origin) const;
  /// The value of a variable; an empty one is none.
  [[nodiscard]] std::optional<std::string> value(const char* name) const;
  /// The product of the extents in a variable, or in the one that had its meaning before: 8 of "2,4,1".
  [[nodiscard]] std::optional<std::size_t> product(const char* name, const char* former_name) const;

  Options options_{};
  Environment environment_{};
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/tpu_resolver.ipp>
#endif
