#pragma once

#include <dirent.h>
#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/core/threads.hpp>

namespace dist::detail {

/// Adds the variables with which MPI finds its server, in addition to the variables of PMIx and mpirun. `interface`
/// belongs to this node's listed address. The user's variables of MPI and hwloc keep their values.
inline void add_launch_variables(std::vector<std::string>& variables, std::size_t ranks_here, bool one_node,
                                 const std::string& directory, const std::string& interface = {}) {
  // Open MPI 4.1 uses PMIx only under a launcher; Slurm needs the fewest variables. This is why its start-up errors
  // mention srun.
  variables.emplace_back("SLURM_NODELIST=h");
  variables.emplace_back("SLURM_JOBID=1");
  variables.emplace_back("SLURM_STEP_ID=0");
  // hwloc would otherwise query X servers at the local ports 6000 to 6009, and wait forever for any other listener
  // there, such as a task.
  variables.emplace_back("HWLOC_COMPONENTS=-gl");
  // With fewer cores than ranks, waiting ranks must yield; otherwise yielding costs each short message 0.3 us.
  if (ranks_here > std::thread::hardware_concurrency()) variables.emplace_back("OMPI_MCA_mpi_yield_when_idle=1");
  // Ranks that share memory need no port, and MPI's ports are open to all networks of the machine.
  if (one_node) variables.emplace_back("OMPI_MCA_btl=self,vader");
  // MPI would otherwise also connect to addresses that several hosts have, such as Docker's bridge, and wait forever.
  // It does not start with both lists, of included and excluded interfaces.
  if (!one_node && !interface.empty() && std::getenv("OMPI_MCA_btl_tcp_if_exclude") == nullptr)
    variables.push_back(concat("OMPI_MCA_btl_tcp_if_include=", interface));
  // Open MPI 5 otherwise aborts a process when a TCP connection to another rank closes, before that rank's server can
  // report the loss.
  if (!one_node) variables.emplace_back("OMPI_MCA_mpi_ft_enable=1");
  // Open MPI 5 shares 16 MiB per rank, which fails under a lower file size limit. Open MPI 4 uses 4 MiB.
  variables.emplace_back("OMPI_MCA_btl_sm_segment_size=4194304");
  // The server's folder, so that files of killed ranks are removed. The second name is for Open MPI 5.
  for (const char* name :
       {"orte_tmpdir_base", "btl_vader_backing_directory", "btl_sm_backing_directory", "osc_sm_backing_directory"})
    variables.push_back(concat("OMPI_MCA_", name, "=", directory));
}

/// Removes variables with which a launcher made this process, or its shell, a member of another world, for which MPI
/// and libpmix would look.
inline void leave_other_worlds() {
  const bool under_mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  std::vector<std::string> names;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view name{*variable, std::strcspn(*variable, "=")};
    const auto begins = [&](std::string_view start) { return name.starts_with(start); };
    if ((begins("PMIX_") && !begins("PMIX_MCA_")) || begins("PMI_") || begins("SLURM_") || begins("OMPI_COMM_WORLD_") ||
        (under_mpirun && (begins("OMPI_MCA_orte_") || begins("OMPI_MCA_ess") || begins("OMPI_MCA_pmix"))))
      names.emplace_back(name);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

/// Sets HOME to `directory` if neither HOME nor /etc/passwd names a folder, as for a container's unknown user: libpmix
/// and Open MPI 4.1 would crash.
inline void require_home(const std::string& directory) {
  if (std::getenv("HOME") == nullptr && getpwuid(getuid()) == nullptr) setenv("HOME", directory.c_str(), 1);
}

/// The variables of this process while MPI starts. Afterwards, restores the environment without MPI's additions, so
/// that a child, such as another mpirun, does not act as this rank.
class LaunchEnvironment {
 public:
  LaunchEnvironment() = default;
  LaunchEnvironment(LaunchEnvironment&&) = default;
  LaunchEnvironment& operator=(LaunchEnvironment&&) = default;
  ~LaunchEnvironment() { restore(); }

  [[nodiscard]] bool empty() const { return before_ == nullptr; }

  /// Sets "NAME=value". Variables of MPI and hwloc keep their values, except for another world.
  void set(std::string_view variable) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) return;
    if (before_ == nullptr) {
      before_ = std::make_unique<Variables>(all());
      leave_other_worlds();
      require_home("/");
    }
    const std::string name{variable.substr(0, equals)};
    if ((name.starts_with("OMPI_MCA_") || name.starts_with("HWLOC_")) && std::getenv(name.c_str()) != nullptr) return;
    setenv(name.c_str(), std::string{variable.substr(equals + 1)}.c_str(), 1);
  }

  /// Restores all variables to their values before the first `set`.
  void restore() {
    if (before_ == nullptr) return;
    const Variables now = all();
    for (const auto& [name, value] : now)
      if (!before_->contains(name)) unsetenv(name.c_str());
    for (const auto& [name, value] : *before_)
      if (const auto found = now.find(name); found == now.end() || found->second != value)
        setenv(name.c_str(), value.c_str(), 1);
    before_.reset();
  }

 private:
  using Variables = std::map<std::string, std::string>;

  [[nodiscard]] static Variables all() {
    Variables variables;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
      const std::string_view both{*variable};
      if (const std::size_t equals = both.find('='); equals != std::string_view::npos)
        variables.emplace(both.substr(0, equals), both.substr(equals + 1));
    }
    return variables;
  }

  std::unique_ptr<Variables> before_;
};

/// Returns a resource limit of this process; empty if unlimited.
[[nodiscard]] inline std::optional<std::size_t> limit_on(int resource) noexcept {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return static_cast<std::size_t>(limit.rlim_cur);
}

[[nodiscard]] inline std::size_t open_descriptors() noexcept {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 3;
  std::size_t count = 0;
  while (const dirent* const entry = readdir(folder))
    if (entry->d_name[0] != '.') ++count;
  closedir(folder);
  return count - 1;  // the folder itself
}

/// Throws OutOfMemory, with the required number, if a limit is too low for `workers` workers, `here` of them on this
/// node. At a limit, MPI and libpmix print pages of messages, or are killed.
///
/// Measured with Open MPI 4.1 and libpmix 4.2: on one node 16 descriptors plus 3 per worker, and shared segments of 4
/// MiB. Between nodes, MPI opens one or two connections per worker.
inline void require_limits(std::size_t workers, std::size_t here) {
  const std::size_t descriptors = open_descriptors() + 20 + 4 * here + 2 * (workers - here);
  if (const auto limit = limit_on(RLIMIT_NOFILE); limit && *limit < descriptors)
    throw OutOfMemory(
        concat("This process may have ", *limit, " files open, too few for a job of ", workers, " workers"),
        concat(descriptors, " are needed"), concat("Raise the limit: ulimit -n ", descriptors, ", or more"));
  constexpr std::size_t file = std::size_t{8} << 20;
  if (const auto limit = limit_on(RLIMIT_FSIZE); limit && *limit < file)
    throw OutOfMemory(concat("This process may only write files of up to ", *limit, " bytes"),
                      concat("the memory that MPI shares between processes is a file of up to ", file, " bytes"),
                      concat("Raise the limit: ulimit -f ", file / 1024, ", or more"));
}

}  // namespace dist::detail
