/// Slurm's compact notations: host lists, and task counts per host (spec M18).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The tasks of the Slurm step in which srun started this process (spec M17).
///
/// Tasks are numbered node by node, in the order of SLURM_STEP_NODELIST. A task's port is the first one plus its number
/// on the node; under srun, tasks need not listen there. SLURM_NODEID and SLURM_LOCALID identify a process's task, so
/// every distribution of ranks works (block, cyclic, plane). If they are missing, uses SLURM_PROCID like tf.distribute,
/// which is correct for the default distribution, block.
class SlurmResolver {
 public:
  /// Settings of a SlurmResolver.
  struct Options {
    /// Number of tasks of each type, assigned in the order chief, evaluator, ps, worker. Empty: all are workers.
    std::map<TaskType, std::size_t> jobs{};
    /// The port of a node's first task. By default 50000 plus the last four digits of the job number, so that jobs
    /// rarely collide.
    std::optional<std::uint16_t> port_base{};
    std::optional<std::size_t> num_accelerators{};  ///< devices per process; not set: the strategy decides
  };

  SlurmResolver() = default;
  /// `environment` contains the variables of Slurm.
  explicit SlurmResolver(Options options, Environment environment = Environment{})
      : options_(std::move(options)), environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;

  /// Empty for a process beyond the tasks in the options.
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return options_.num_accelerators; }
  [[nodiscard]] std::string describe() const { return "the Slurm step"; }

 private:
  struct Step {
    std::vector<std::string> hosts;
    std::vector<std::size_t> tasks;  // on each host

    [[nodiscard]] std::size_t size() const { return std::accumulate(tasks.begin(), tasks.end(), std::size_t{0}); }
  };

  static constexpr const char* why = "this process is not inside a Slurm step";
  static constexpr const char* suggestion = "Start the program with srun, also in a batch script";

  [[nodiscard]] std::size_t number(const char* name) const;

  [[nodiscard]] Step read_step() const;

  [[nodiscard]] std::size_t place_in(const Step& step) const;
  [[noreturn]] static void refuse_place(const std::string& given);

  [[nodiscard]] std::size_t port_base() const;

  /// Returns the requested counts, in order of assignment.
  [[nodiscard]] std::vector<std::pair<TaskType, std::size_t>> jobs(std::size_t available) const;

  Options options_{};
  Environment environment_{};
};

/// The most hosts or tasks in a compact list.
inline constexpr std::size_t host_list_max_hosts = std::size_t{1} << 14;
/// The longest host name, in characters.
inline constexpr std::size_t host_list_max_name = 253;

/// Expands a host list: `node[01-03,7],login` is node01, node02, node03, node7, login. Keeps leading zeros, and Slurm's
/// order of nodes. Throws InvalidArgument naming `source`.
[[nodiscard]] std::vector<std::string> expand_host_list(std::string_view list,
                                                        std::string_view source = "SLURM_STEP_NODELIST");

/// Expands task counts: `3(x2),2,1` is 3, 3, 2, 1. Throws InvalidArgument naming `source`.
[[nodiscard]] std::vector<std::size_t> expand_tasks_per_node(std::string_view list,
                                                             std::string_view source = "SLURM_STEP_TASKS_PER_NODE");

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/slurm_resolver.ipp>
#endif
