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

TEST_CASE("variables are set for a time, and are as before afterwards") {
  unsetenv("DIST_TEST_NEW");
  setenv("DIST_TEST_OLD", "before", 1);
  setenv("OMPI_MCA_dist_test", "the user's", 1);
  LaunchEnvironment environment;
  CHECK(environment.empty());
  for (const char* variable :
       {"DIST_TEST_NEW=a=b", "DIST_TEST_OLD=during", "OMPI_MCA_dist_test=ours", "no equals sign"})
    environment.set(variable);
  CHECK_FALSE(environment.empty());
  CHECK(value_of("DIST_TEST_NEW") == "a=b");
  CHECK(value_of("DIST_TEST_OLD") == "during");
  CHECK(value_of("OMPI_MCA_dist_test") == "the user's");
  environment.restore();
  CHECK(value_of("DIST_TEST_NEW") == "unset");
  CHECK(value_of("DIST_TEST_OLD") == "before");
  CHECK(value_of("OMPI_MCA_dist_test") == "the user's");
}

TEST_CASE("ranks yield only where they are more than the cores") {
  const auto yields = [](std::size_t ranks) {
    std::vector<std::string> variables;
    add_launch_variables(variables, ranks, "/dev/shm/x");
    CHECK(std::count(variables.begin(), variables.end(), "OMPI_MCA_orte_tmpdir_base=/dev/shm/x") == 1);
    return std::count(variables.begin(), variables.end(), "OMPI_MCA_mpi_yield_when_idle=1") == 1;
  };
  CHECK_FALSE(yields(1));
  CHECK(yields(std::thread::hardware_concurrency() + 1));
}
