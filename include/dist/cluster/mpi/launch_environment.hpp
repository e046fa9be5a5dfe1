#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/core/threads.hpp>

namespace dist::detail {

/// Adds what MPI needs besides the variables of PMIx to find its server, and what mpirun would have set. Variables of
/// MPI and hwloc that the user has set stay as they are.
inline void add_launch_variables(std::vector<std::string>& variables, std::size_t ranks_here, bool one_node,
                                 const std::string& directory) {
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
  // Whatever a killed rank leaves goes with the server's folder. The second name is Open MPI 5's.
  for (const char* name :
       {"orte_tmpdir_base", "btl_vader_backing_directory", "btl_sm_backing_directory", "osc_sm_backing_directory"})
    variables.push_back(text("OMPI_MCA_", name, "=", directory));
}

/// Variables of this process for the time that MPI starts. Afterwards they are taken back, so that no child believes to
/// be this rank.
class LaunchEnvironment {
 public:
  LaunchEnvironment() = default;
  LaunchEnvironment(LaunchEnvironment&&) = default;
  LaunchEnvironment& operator=(LaunchEnvironment&&) = default;
  ~LaunchEnvironment() { restore(); }

  [[nodiscard]] bool empty() const { return before_.empty(); }

  /// Sets "NAME=value". Where variables of MPI or hwloc have a value already, that stays.
  void set(std::string_view variable) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) return;
    const std::string name{variable.substr(0, equals)};
    const char* before = std::getenv(name.c_str());
    if (before != nullptr && (name.starts_with("OMPI_MCA_") || name.starts_with("HWLOC_"))) return;
    before_.push_back({name, before != nullptr, before != nullptr ? before : ""});
    setenv(name.c_str(), std::string{variable.substr(equals + 1)}.c_str(), 1);
  }

  /// Back to what was before.
  void restore() {
    for (; !before_.empty(); before_.pop_back()) {
      const Before& last = before_.back();
      if (last.was_set)
        setenv(last.name.c_str(), last.value.c_str(), 1);
      else
        unsetenv(last.name.c_str());
    }
  }

 private:
  struct Before {
    std::string name;
    bool was_set;
    std::string value;
  };

  std::vector<Before> before_;
};

}  // namespace dist::detail
