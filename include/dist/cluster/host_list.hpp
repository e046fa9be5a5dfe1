/// The two shorthands of Slurm: a list of hosts, and how many tasks run on each (spec M18).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/config.hpp>

namespace dist {

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
#include <dist/cluster/host_list.ipp>
#endif
