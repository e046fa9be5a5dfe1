#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/mpi/worker_group.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/net/listen.hpp>

namespace dist {

/// The roles of the processes that mpirun or srun has started for a job with parameter servers: rank 0 is the chief, the last
/// ranks are the parameter servers, and those between are the workers. They call each other by dist::Grpc, at the names of their
/// hosts and ports that are free there; MPI serves to exchange these addresses and the secret of the job.
///
///     // mpirun -n 6 program: a chief, three workers and two parameter servers
///     const dist::MpiRolesResolver resolver{{.parameter_servers = 2}};
class MpiRolesResolver {
 public:
  /// The launcher ends all processes when one of them is lost: mpirun by default, srun with --kill-on-bad-exit.
  static constexpr bool ends_together = true;

  struct Options {
    std::size_t parameter_servers = 1;
    std::chrono::milliseconds start_timeout{300'000};  ///< for all processes to come; one that is late ends all of them
  };

  /// All processes of MPI_COMM_WORLD make one together. MPI is started unless it runs, and then finalised when the process
  /// exits. Throws InvalidArgument where no launcher has started this process, or fewer processes than there are roles.
  explicit MpiRolesResolver(Options options);

  [[nodiscard]] ClusterSpec cluster_spec() const { return cluster_; }
  [[nodiscard]] std::optional<Task> task() const { return task_; }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return source_; }
  /// That of rank 0 (net::job_secret), or a random one where it has none.
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

#ifndef DIST_COMPILED_MPI
#include <dist/cluster/mpi/roles_resolver.ipp>
#endif
