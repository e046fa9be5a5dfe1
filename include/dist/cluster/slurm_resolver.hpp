/// The two shorthands of Slurm: a list of hosts, and how many tasks run on each (spec M18).
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
#include <dist/cluster/task.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The tasks of the Slurm step that this process was started in by srun (spec M17).
///
/// Tasks are numbered node by node, in the order of SLURM_STEP_NODELIST; their addresses are the first port plus their
/// number on the node, though under srun nobody has to listen there. A process finds its own place by SLURM_NODEID and
/// SLURM_LOCALID, so the list is right for every distribution of ranks (block, cyclic, plane); under a cyclic one
/// SLURM_PROCID counts in another order. Where those two are missing, SLURM_PROCID is taken for the place, as
/// tf.distribute does; that is right for the usual distribution, block.
class SlurmResolver {
 public:
  struct Options {
    /// How many tasks of each type there are; they take the step's tasks in the order of their names: chief, evaluator,
    /// ps, worker. Empty: all are workers.
    std::map<TaskType, std::size_t> jobs{};
    /// The port of a node's first task. None: 50000 plus the last four digits of the job's number, so that two jobs
    /// that share a node rarely meet.
    std::optional<std::uint16_t> port_base{};
    std::optional<std::size_t> num_accelerators{};
  };

  SlurmResolver() = default;
  explicit SlurmResolver(Options options, Environment environment = Environment{})
      : options_(std::move(options)), environment_(std::move(environment)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const;

  /// None for a process beyond the tasks that the options ask for.
  [[nodiscard]] std::optional<Task> task() const;
  [[nodiscard]] std::optional<std::size_t> num_accelerators() const noexcept { return options_.num_accelerators; }
  [[nodiscard]] std::string describe() const { return "the Slurm step"; }

 private:
  struct Step {
    std::vector<std::string> hosts;
    std::vector<std::size_t> tasks;  // of each host

    [[nodiscard]] std::size_t size() const { return std::accumulate(tasks.begin(), tasks.end(), std::size_t{0}); }
  };

  static constexpr const char* why = "this process is not inside a Slurm step";
  static constexpr const char* suggestion = "Start the program with srun, also in a batch script";

  [[nodiscard]] std::size_t number(const char* name) const;

  [[nodiscard]] Step read_step() const;

  /// This process's number in the step's list of tasks.
  [[nodiscard]] std::size_t place_in(const Step& step) const;
  [[noreturn]] static void refuse_place(const std::string& given);

  [[nodiscard]] std::size_t port_base() const;

  /// The counts that were asked for, in the order in which they take tasks.
  [[nodiscard]] std::vector<std::pair<TaskType, std::size_t>> jobs(std::size_t available) const;

  Options options_{};
  Environment environment_{};
};

/// The most hosts, and the most tasks, that a shorthand may stand for, and the longest name of a host.
inline constexpr std::size_t host_list_max_hosts = std::size_t{1} << 14;
inline constexpr std::size_t host_list_max_name = 253;

/// The hosts of a list such as `node[01-03,7],login`: node01, node02, node03, node7, login. Zeros in front are kept.
/// The order is that of the list, which is how Slurm numbers a step's nodes. Throws InvalidArgument, which names
/// `source`.
[[nodiscard]] std::vector<std::string> expand_host_list(std::string_view list,
                                                        std::string_view source = "SLURM_STEP_NODELIST");

/// The counts of a list such as `3(x2),2,1`: 3, 3, 2, 1. Throws InvalidArgument, which names `source`.
[[nodiscard]] std::vector<std::size_t> expand_tasks_per_node(std::string_view list,
                                                             std::string_view source = "SLURM_STEP_TASKS_PER_NODE");

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/slurm_resolver.ipp>
#endif
