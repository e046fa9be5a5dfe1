#include <dist/cluster/slurm_resolver.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <dist/core/error.hpp>

using dist::expand_host_list;
using dist::expand_tasks_per_node;
using dist::InvalidArgument;

using Names = std::vector<std::string>;
using Counts = std::vector<std::size_t>;

TEST_CASE("host lists are expanded (spec M18)") {
  CHECK(expand_host_list("").empty());
  CHECK(expand_host_list("node") == Names{"node"});
  CHECK(expand_host_list("a,b-1,c") == Names{"a", "b-1", "c"});
  CHECK(expand_host_list("n[1-3]") == Names{"n1", "n2", "n3"});
  CHECK(expand_host_list("n[9-11],login") == Names{"n9", "n10", "n11", "login"});
  CHECK(expand_host_list("n[3,1,5-6].example") == Names{"n3.example", "n1.example", "n5.example", "n6.example"});
  CHECK(expand_host_list("r[1-2]n[1-2]") == Names{"r1n1", "r1n2", "r2n1", "r2n2"});
}

TEST_CASE("leading zeros are kept (spec M18)") {
  CHECK(expand_host_list("n[08-11]") == Names{"n08", "n09", "n10", "n11"});
  CHECK(expand_host_list("n[000-001,7]") == Names{"n000", "n001", "n7"});
  CHECK(expand_host_list("n[098-102]") == Names{"n098", "n099", "n100", "n101", "n102"});
}

TEST_CASE("invalid host lists are refused with the position (spec M18)") {
  CHECK_THROWS_WITH_AS(
      expand_host_list("a,n[1-x]"),
      "The host list 'a,n[1-x]' of SLURM_STEP_NODELIST cannot be read (near character 8: a number or a "
      "range such as 1-3 was expected in the brackets). Write it as Slurm does, such as "
      "node[01-03,7],login.",
      InvalidArgument);
  const auto refuse = [](const std::string& list, const std::string& because) {
    CAPTURE(list);
    CHECK_THROWS_WITH_AS(expand_host_list(list, "HOSTS"), doctest::Contains((because + ").").c_str()), InvalidArgument);
  };
  refuse("a,,b", "near character 3: the name of a host was expected");
  refuse("a,", "near character 3: the name of a host was expected");
  refuse(",a", "near character 1: the name of a host was expected");
  refuse("n[1-3", "a ']' was expected");
  refuse("n[1[2]]", "a ']' was expected");
  refuse("n1]", "near character 3: a ']' has no '['");
  refuse("n[]", "was expected in the brackets");
  refuse("n[1,]", "was expected in the brackets");
  refuse("n[-3]", "was expected in the brackets");
  refuse("n[1-2-3]", "a ']' was expected");
  refuse("n[3-1]", "the range 3-1 is empty");
  refuse("n[1-16385]", "it expands to more than 16384 hosts");
  refuse("n[1-300]m[1-300]", "it expands to more than 16384 hosts");
  refuse("n[1-10000],m[1-10000]", "it expands to more than 16384 hosts");
  refuse("n[0-18446744073709551615]", "was expected in the brackets");
  refuse("n[" + std::string(300, '0') + "]", "a number has too many digits");
  refuse(std::string(254, 'n'), "the name of a host is longer than 253 characters");
  CHECK(expand_host_list("n[1-16384]").size() == 16384);
}

TEST_CASE("task counts are expanded (spec M18)") {
  CHECK(expand_tasks_per_node("").empty());
  CHECK(expand_tasks_per_node("4") == Counts{4});
  CHECK(expand_tasks_per_node("3(x2),2,1") == Counts{3, 3, 2, 1});
  CHECK(expand_tasks_per_node("1(x1),2(x3)") == Counts{1, 2, 2, 2});
}

TEST_CASE("invalid task counts are refused (spec M18)") {
  CHECK_THROWS_WITH_AS(
      expand_tasks_per_node("2,x"),
      "The task counts '2,x' of SLURM_STEP_TASKS_PER_NODE cannot be read ('x' is not a count from 1 to "
      "16384, or one with a repetition such as 3(x2)). Write them as Slurm does, such as 3(x2),2,1.",
      InvalidArgument);
  for (const char* list : {"2,", ",2", "0", "2(x0)", "2(x2", "(x2)", "2(x)", "2(x2)3", "-1", "2 ", "2(x16385)",
                           "1(x10000),1(x10000)", "99999999999999999999"}) {
    CAPTURE(list);
    CHECK_THROWS_AS(expand_tasks_per_node(list), InvalidArgument);
  }
}
