#include <dist/cluster/mpi/launch_environment.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using dist::detail::add_launch_variables;
using dist::detail::LaunchEnvironment;

namespace {

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "unset" : value;
}

}  // namespace

TEST_CASE("variables are set temporarily, and restored afterwards") {
  unsetenv("DIST_TEST_NEW");
  setenv("DIST_TEST_OLD", "before", 1);
  setenv("OMPI_MCA_dist_test", "the user's", 1);
  setenv("HWLOC_DIST_TEST", "the user's", 1);
  LaunchEnvironment environment;
  CHECK(environment.empty());
  for (const char* variable : {"DIST_TEST_NEW=a=b", "DIST_TEST_OLD=during", "OMPI_MCA_dist_test=ours",
                               "HWLOC_DIST_TEST=ours", "no equals sign"})
    environment.set(variable);
  CHECK_FALSE(environment.empty());
  CHECK(value_of("DIST_TEST_NEW") == "a=b");
  CHECK(value_of("DIST_TEST_OLD") == "during");
  CHECK(value_of("OMPI_MCA_dist_test") == "the user's");
  CHECK(value_of("HWLOC_DIST_TEST") == "the user's");
  environment.restore();
  CHECK(value_of("DIST_TEST_NEW") == "unset");
  CHECK(value_of("DIST_TEST_OLD") == "before");
  CHECK(value_of("OMPI_MCA_dist_test") == "the user's");
}

TEST_CASE("variables that MPI adds are removed, and variables of MPI or a launcher are restored") {
  unsetenv("OMPI_MCA_dist_new");
  setenv("OMPI_MCA_dist_test", "the user's", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  setenv("OMPI_MCA_orte_dist_test", "mpirun's", 1);
  setenv("PMIX_DIST_TEST", "mpirun's", 1);
  setenv("PMIX_MCA_dist_test", "the user's", 1);
  LaunchEnvironment environment;
  environment.set("OMPI_MCA_orte_dist_test=ours");
  CHECK(value_of("OMPI_COMM_WORLD_SIZE") == "unset");
  CHECK(value_of("OMPI_MCA_orte_dist_test") == "ours");
  CHECK(value_of("PMIX_DIST_TEST") == "unset");
  CHECK(value_of("PMIX_MCA_dist_test") == "the user's");
  setenv("OMPI_MCA_dist_new", "MPI's", 1);
  setenv("OMPI_MCA_dist_test", "MPI's", 1);
  environment.restore();
  CHECK(environment.empty());
  CHECK(value_of("OMPI_MCA_dist_new") == "unset");
  CHECK(value_of("OMPI_MCA_dist_test") == "the user's");
  CHECK(value_of("OMPI_COMM_WORLD_SIZE") == "1");
  CHECK(value_of("OMPI_MCA_orte_dist_test") == "mpirun's");
  CHECK(value_of("PMIX_DIST_TEST") == "mpirun's");
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_MCA_orte_dist_test", "PMIX_DIST_TEST", "PMIX_MCA_dist_test"})
    unsetenv(name);
}

TEST_CASE("ranks yield only if there are more of them than cores") {
  const auto yields = [](std::size_t ranks) {
    std::vector<std::string> variables;
    add_launch_variables(variables, ranks, true, "/dev/shm/x");
    CHECK(std::count(variables.begin(), variables.end(), "OMPI_MCA_orte_tmpdir_base=/dev/shm/x") == 1);
    CHECK(std::count(variables.begin(), variables.end(), "OMPI_MCA_btl_sm_segment_size=4194304") == 1);
    return std::count(variables.begin(), variables.end(), "OMPI_MCA_mpi_yield_when_idle=1") == 1;
  };
  CHECK_FALSE(yields(1));
  CHECK(yields(std::thread::hardware_concurrency() + 1));
}

TEST_CASE("variables are removed with their owner, which may be moved") {
  unsetenv("DIST_TEST_NEW");
  {
    LaunchEnvironment first;
    first.set("DIST_TEST_NEW=during");
    const LaunchEnvironment second = std::move(first);
    first = {};
    CHECK(value_of("DIST_TEST_NEW") == "during");
  }
  CHECK(value_of("DIST_TEST_NEW") == "unset");
}

TEST_CASE("only ranks of several nodes open ports") {
  for (const bool one_node : {true, false}) {
    std::vector<std::string> variables;
    add_launch_variables(variables, 2, one_node, "/dev/shm/x", "eth7");
    CHECK(std::count(variables.begin(), variables.end(), "OMPI_MCA_btl=self,vader") == (one_node ? 1 : 0));
    CHECK(std::count(variables.begin(), variables.end(), "OMPI_MCA_mpi_ft_enable=1") == (one_node ? 0 : 1));
    CHECK(std::count(variables.begin(), variables.end(), "OMPI_MCA_btl_tcp_if_include=eth7") == (one_node ? 0 : 1));
  }
  setenv("OMPI_MCA_btl_tcp_if_exclude", "docker0", 1);
  std::vector<std::string> variables;
  add_launch_variables(variables, 2, false, "/dev/shm/x", "eth7");
  CHECK(std::count(variables.begin(), variables.end(), "OMPI_MCA_btl_tcp_if_include=eth7") == 0);
  unsetenv("OMPI_MCA_btl_tcp_if_exclude");
}
