/// Tests that start themselves under mpirun, to observe the end of a job.
#pragma once

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/text.hpp>

namespace support {

// Options for more processes than cores, and for others to continue for a while after one fails.
#ifdef MPICH_VERSION
inline constexpr bool has_mpich = true;
inline constexpr const char* mpirun_options = "";
inline constexpr const char* keep_others = "";
inline constexpr const char* variable_of_rank = "PMI_RANK";
/// MPICH's mpirun terminates all processes when a process that it started is killed, so it starts a shell that runs the
/// program.
inline constexpr const char* mpirun_shell = R"("$0" "$@"; status=$?; sleep 2; exit $status)";
#else
inline constexpr bool has_mpich = false;
inline constexpr const char* mpirun_options =
    "--oversubscribe --mca pml ob1 --mca btl vader,self --mca mpi_yield_when_idle 1";
/// The second and third are for Open MPI 5.
inline constexpr const char* keep_others =
    "OMPI_MCA_orte_abort_on_non_zero_status=0 PRTE_MCA_state_base_recoverable=1 "
    "PRTE_MCA_state_base_error_non_zero_exit=0 ";
inline constexpr const char* variable_of_rank = "OMPI_COMM_WORLD_RANK";
inline constexpr const char* mpirun_shell = R"(exec "$0" "$@")";
#endif

struct OwnMpirun {
  std::size_t processes = 1;
  std::string test_case;         ///< run by the processes, skipped otherwise
  std::string environment = "";  ///< "NAME=value", separated by spaces
  int seconds = 30;              ///< until all are killed
  bool keeps_others = true;      ///< after one fails
};

/// Returns the output of the processes, and calls `on_line` for each line when it arrives.
template <class OnLine>
std::string output_of(const OwnMpirun& job, const OnLine& on_line) {
  char self[4096] = {};
  REQUIRE(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
  // Unfinalised MPI leaks memory, and mpirun would not exit after the status for leaks.
  const std::string command = dist::concat(
      "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ",
      job.keeps_others ? keep_others : "", job.environment, " timeout -k 1 ", job.seconds, " " DIST_MPIRUN " ",
      mpirun_options, " -n ", job.processes, " sh -c '", job.keeps_others ? mpirun_shell : R"(exec "$0" "$@")", "' '",
      self, "' --no-skip '--test-case=", job.test_case, "' 2>&1");
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char part[512];
  while (std::fgets(part, sizeof(part), pipe) != nullptr) {
    output += part;
    on_line(std::string_view{part});
  }
  pclose(pipe);
  return output;
}
inline std::string output_of(const OwnMpirun& job) {
  return output_of(job, [](std::string_view) {});
}

}  // namespace support
