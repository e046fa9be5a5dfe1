#pragma once

#include <pwd.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/core/threads.hpp>

namespace dist::detail {

/// Adds the variables by which MPI finds its server, in addition to PMIx's variables, and the variables that mpirun sets. `interface` is the network interface of this node's listed address. Variables of MPI and hwloc that the user has
/// set keep their values.
inline void add_launch_variables(std::vector<std::string>& variables, std::size_t ranks_here, bool one_node,
                                 const std::string& directory, const std::string& interface = {}) {
  // Open MPI 4.1 looks for PMIx only where it believes to be under a launcher, and this is the one it needs no more of.
  // Where it does not start it therefore talks of srun, which has nothing to do with it.
  variables.emplace_back("SLURM_NODELIST=h");
  variables.emplace_back("SLURM_JOBID=1");
  variables.emplace_back("SLURM_STEP_ID=0");
  // hwloc, by which MPI knows the machine, would otherwise ask X servers at the local ports 6000 to 6009 for their
  // screens, and wait for ever for any other listener there, such as a task of a world.
  variables.emplace_back("HWLOC_COMPONENTS=-gl");
  // Ranks that wait must let others run where these need the core; elsewhere it would cost each short message 0.3 us.
  if (ranks_here > std::thread::hardware_concurrency()) variables.emplace_back("OMPI_MCA_mpi_yield_when_idle=1");
  // Ranks that share memory need no port, and MPI's are open to all networks of the machine.
  if (one_node) variables.emplace_back("OMPI_MCA_btl=self,vader");
  // MPI would otherwise also connect to addresses that hosts have in common, such as the one of Docker's bridge, and
  // wait for ever. It refuses to start where both the list of interfaces and its opposite are set.
  if (!one_node && !interface.empty() && std::getenv("OMPI_MCA_btl_tcp_if_exclude") == nullptr)
    variables.push_back(concat("OMPI_MCA_btl_tcp_if_include=", interface));
  // Open MPI 5 otherwise ends a process when a TCP connection to another rank closes, before that rank's server can report
  // the loss.
  if (!one_node) variables.emplace_back("OMPI_MCA_mpi_ft_enable=1");
  // Each rank of Open MPI 5 has a shared segment of 16 MiB, which fails under a lower limit on file sizes. Open MPI 4 uses
  // 4 MiB.
  variables.emplace_back("OMPI_MCA_btl_sm_segment_size=4194304");
  // Whatever a killed rank leaves goes with the server's folder. The second name is Open MPI 5's.
  for (const char* name :
       {"orte_tmpdir_base", "btl_vader_backing_directory", "btl_sm_backing_directory", "osc_sm_backing_directory"})
    variables.push_back(concat("OMPI_MCA_", name, "=", directory));
}

/// Removes the variables by which a launcher has made this process, or the shell that started it, a member of another
/// world. MPI and libpmix would look for that world.
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

/// Sets HOME to `directory` if neither HOME nor the user's entry in /etc/passwd names a folder, as in a container that
/// runs under another user number: libpmix and Open MPI 4.1 crash there.
inline void require_home(const std::string& directory) {
  if (std::getenv("HOME") == nullptr && getpwuid(getuid()) == nullptr) setenv("HOME", directory.c_str(), 1);
}

/// The variables of this process while MPI starts. Afterwards the environment is as it was before, without those that
/// MPI has added, so that a child, such as another mpirun, does not take itself for this rank.
class LaunchEnvironment {
 public:
  LaunchEnvironment() = default;
  LaunchEnvironment(LaunchEnvironment&&) = default;
  LaunchEnvironment& operator=(LaunchEnvironment&&) = default;
  ~LaunchEnvironment() { restore(); }

  [[nodiscard]] bool empty() const { return before_ == nullptr; }

  /// Sets "NAME=value". Variables of MPI and hwloc that have a value keep it, except those of another world.
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

  /// Gives all variables of the process the values that they had before the first one was set.
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

}  // namespace dist::detail
