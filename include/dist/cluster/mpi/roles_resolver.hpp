#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/mpi/worker_group.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/net/listen.hpp>

namespace dist {

/// The roles of processes that mpirun or srun started for a job with parameter servers: rank 0 is the chief, the last
/// ranks are the parameter servers, the others workers. They communicate over dist::Grpc, at their host names and free
/// ports; MPI only exchanges these addresses and the job's secret.
///
///     // mpirun -n 6 program: a chief, three workers and two parameter servers
///     const dist::MpiRolesResolver resolver{{.parameter_servers = 2}};
class MpiRolesResolver {
 public:
  /// The launcher terminates all processes if one fails: mpirun by default, srun with --kill-on-bad-exit.
  static constexpr bool ends_together = true;

  /// Settings of an MpiRolesResolver.
  struct Options {
    std::size_t parameter_servers = 1;                 ///< number of processes that serve variables
    std::chrono::milliseconds start_timeout{300'000};  ///< for all processes to start, or all are terminated
  };

  /// A collective call of all processes of MPI_COMM_WORLD. Starts MPI unless it runs, and then finalises it at exit.
  /// Throws InvalidArgument without a launcher, or if it started fewer processes than there are roles.
  explicit MpiRolesResolver(Options options);

  [[nodiscard]] ClusterSpec cluster_spec() const { return cluster_; }
  [[nodiscard]] std::optional<Task> task() const { return task_; }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return source_; }
  /// The secret of rank 0 (net::job_secret), or a random one.
  [[nodiscard]] std::string secret() const { return secret_; }

 private:
  void exchange(const Options& options);

  WorkerGroup::JobScope work_;
  WorkerGroup world_;
  net::ReservedPort port_;
  ClusterSpec cluster_;
  Task task_;
  std::string source_;
  std::string secret_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/mpi/roles_resolver.ipp>
#endif
