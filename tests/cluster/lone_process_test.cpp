#include <dist/cluster/lone_process.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <dist/cluster/environment.hpp>
#include <dist/cluster/launcher.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include "support/stderr_of.hpp"

namespace {

using Variables = std::map<std::string, std::string>;

void set_launcher(const Variables& variables) {
  for (const char* name : {"DIST_WARNINGS", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK",
                           "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "WORLD_SIZE", "RANK"})
    unsetenv(name);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
}

/// Returns the stderr output of `make` in a process that a launcher started with `variables`.
template <class Make>
std::string said(const Variables& variables, Make make) {
  return testing::stderr_of([&] {
           set_launcher(variables);
           make();
         })
      .stderr_text;
}

const Variables mpirun{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "0"}};
const std::string warning =
    "dist: a launcher started 4 processes (OMPI_COMM_WORLD_SIZE), and each uses a strategy of one process: they do not "
    "train together. Use MultiWorker, or start one process. DIST_WARNINGS=0 silences this.\n";

}  // namespace

TEST_CASE("the first of several processes warns once of a single-process strategy") {
  CHECK(said(mpirun, [] {
          dist::Default first;
          dist::Default second;
        }) == warning);
  CHECK(said(mpirun, [] { dist::Mirrored<dist::ThreadAllReduce> strategy{1}; }) == warning);
}

TEST_CASE("one process, a later rank, a process that joined others, and disabled warnings cause no warning") {
  const auto make = [] { dist::Default strategy; };
  CHECK(said({}, make).empty());
  CHECK(said({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}, make).empty());
  CHECK(said({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}}, make).empty());
  CHECK(said({{"SLURM_STEP_NUM_TASKS", "4"}}, make).empty());  // a batch script, outside all steps
  CHECK(said(mpirun, [&] {
          dist::detail::has_joined_others = true;
          make();
        }).empty());
  Variables silent = mpirun;
  silent["DIST_WARNINGS"] = "0";
  CHECK(said(silent, make).empty());
}

TEST_CASE("started_processes agrees with find_launcher") {
  const std::vector<Variables> launchers{
      {},
      mpirun,
      {{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}},
      {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "5"}, {"SLURM_PROCID", "0"}},
      {{"WORLD_SIZE", "2"}, {"RANK", "0"}},
      {{"WORLD_SIZE", "2"}},
      {{"OMPI_COMM_WORLD_SIZE", "2"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "7"}}};
  for (const Variables& variables : launchers) {
    CAPTURE(variables.size());
    const auto ending = testing::stderr_of([&] {
      set_launcher(variables);
      const dist::Launcher launcher = dist::find_launcher(dist::Environment{variables});
      const auto started = dist::detail::started_processes();
      if (started.count != launcher.world_size.value_or(1) ||
          (started.variable ? started.variable : "") != launcher.evidence)
        std::abort();
    });
    CHECK(!ending.aborted);
  }
}
