#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/launcher.hpp>
#include <dist/cluster/task.hpp>
#include <dist/comm/mpi/rpc/address.hpp>
#include <dist/core/error.hpp>
#include <dist/net/endpoint.hpp>

namespace dist {

/// The roles of the processes that mpirun or srun has started for a job with parameter servers: rank 0 is the chief, the last
/// ranks are the parameter servers, and those between are the workers. For the transport dist::Mpi, whose addresses it lists.
///
///     // mpirun -n 6 program: a chief, three workers and two parameter servers
///     const dist::MpiRolesResolver resolver{{.parameter_servers = 2}};
class MpiRolesResolver {
 public:
  struct Options {
    std::size_t parameter_servers = 1;
  };

  /// Takes the number of processes and the rank from the launcher's variables.
  explicit MpiRolesResolver(Options options, const Environment& environment = Environment{})
      : options_(options), launcher_(find_launcher(environment)) {}
  /// Takes those of an MPI world that is there already.
  MpiRolesResolver(std::size_t world_size, std::size_t rank, Options options)
      : options_(options), launcher_{Launcher::Kind::none, "MPI", world_size, rank, "MPI_COMM_WORLD", true} {}

  /// Throws InvalidArgument where no launcher has started this process, or fewer processes than there are roles.
  [[nodiscard]] ClusterSpec cluster_spec() const {
    const std::size_t size = world_size();
    ClusterSpec cluster;
    for (std::size_t rank = 0; rank < size; ++rank)
      cluster.add(task_of(rank, size), to_string(mpi::endpoint_of_rank(rank)));
    return cluster;
  }
  [[nodiscard]] std::optional<Task> task() const {
    const std::size_t size = world_size();
    if (*launcher_.rank >= size)
      throw InvalidArgument(text("The rank that ", launcher_.name, " gave cannot be used"),
                            text("rank ", *launcher_.rank, " of ", size, " (", launcher_.evidence, ")"),
                            "Ranks count from 0 to the size less 1; do not change the launcher's variables");
    return task_of(*launcher_.rank, size);
  }
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return std::nullopt; }
  [[nodiscard]] std::string describe() const { return launcher_.name.empty() ? "no launcher" : launcher_.name; }

 private:
  /// How many processes there are, which is enough.
  [[nodiscard]] std::size_t world_size() const {
    const std::size_t least = options_.parameter_servers + 2;
    const std::string command = text("Start with mpirun -n ", least + 1, " PROGRAM, or more processes");
    if (!launcher_.world_size || !launcher_.rank)
      throw InvalidArgument("No launcher of MPI has started this process",
                            "its variables, such as OMPI_COMM_WORLD_SIZE, are not set", command);
    if (!launcher_.starts_mpi) require_world_size(launcher_, 1);
    if (options_.parameter_servers == 0)
      throw InvalidArgument("A job with parameter servers was given none", "parameter_servers is 0",
                            "Give the number of parameter servers to dist::MpiRolesResolver");
    if (*launcher_.world_size < least)
      throw InvalidArgument(
          text(launcher_.name, " has started too few processes"),
          text(*launcher_.world_size, " of them, for a chief, at least one worker and ", options_.parameter_servers,
               options_.parameter_servers == 1 ? " parameter server" : " parameter servers"),
          command);
    return *launcher_.world_size;
  }
  [[nodiscard]] Task task_of(std::size_t rank, std::size_t size) const {
    const std::size_t first_server = size - options_.parameter_servers;
    if (rank == 0) return {TaskType::chief, 0};
    if (rank < first_server) return {TaskType::worker, rank - 1};
    return {TaskType::parameter_server, rank - first_server};
  }

  Options options_;
  Launcher launcher_;
};

}  // namespace dist
