/// Finds mistakes that can be seen from a configuration alone, before any process waits for another.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>

namespace dist {

namespace detail {

/// Throws InvalidArgument unless every task can be reached where its address says, or no task has an address, or the
/// first one alone.
void validate_addresses(const ClusterSpec& cluster, std::string_view source);

/// Throws InvalidArgument unless `task` is a task of the cluster.
void validate_task(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source);

}  // namespace detail

/// Throws InvalidArgument with a message for each mistake unless this is a cluster that could work and `task` is one of
/// its tasks (spec M08, M25). `source` says where it comes from: "TF_CONFIG". No tasks at all is no mistake (spec A08).
void validate_cluster(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source);

/// The same for a strategy whose workers train in step: besides, there must be a task to train (spec A09), workers are
/// numbered without gaps, and the process is no parameter server.
void validate_multi_worker(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source);

/// The same for a job with parameter servers, which its chief coordinates (spec J01, J12). Besides, there is a parameter server
/// and a worker, each with an address, and no evaluator, which is a job of its own. The chief listens nowhere, so it may be
/// left out of the list.
void validate_parameter_servers(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source);

/// What works but is probably not meant, in a sentence each: tasks that MultiWorker does not use.
[[nodiscard]] std::vector<std::string> multi_worker_notes(const ClusterSpec& cluster, std::string_view source);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/validate.ipp>
#endif
