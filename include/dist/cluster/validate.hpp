/// Finds errors in a configuration before any process waits for another.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/core/config.hpp>

namespace dist {

namespace detail {

/// Throws InvalidArgument unless all tasks have a valid address, or none has, or only the first.
void validate_addresses(const ClusterSpec& cluster, std::string_view source);

/// Throws InvalidArgument if `task` is not a task of the cluster.
void validate_task(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source);

}  // namespace detail

/// Throws InvalidArgument, with a specific message that names `source`, unless the cluster is valid and contains `task`
/// (spec M08, M25). An empty cluster is valid (spec A08).
void validate_cluster(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source);

/// Validates a cluster for synchronous training: as `validate_cluster`, and with training tasks (spec A09), contiguous
/// worker indices, and `task` not a parameter server.
void validate_multi_worker(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source);

/// Validates a job with parameter servers (spec J01, J12): as `validate_cluster`, and with parameter servers and
/// workers that have addresses, and without evaluators, which are separate jobs. The chief does not listen, and need
/// not be listed.
void validate_parameter_servers(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source);

/// Returns a note for each probably unintended setting: tasks that MultiWorker does not use.
[[nodiscard]] std::vector<std::string> multi_worker_notes(const ClusterSpec& cluster, std::string_view source);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/validate.ipp>
#endif
