#include <dist/cluster/mpi/hosted_options.hpp>

#include <doctest/doctest.h>

using dist::HostedOptions;
using dist::HostedTask;
using dist::NodeMap;

namespace {

void check_list(std::vector<HostedTask> tasks, std::size_t rank = 0) {
  HostedOptions options;
  options.tasks = std::move(tasks);
  options.rank = rank;
  dist::check(options);
}

}  // namespace

TEST_CASE("tasks with the same host form a node; nodes are ordered by their lowest ranks") {
  const NodeMap nodes{{{"b", "1"}, {"a", "1"}, {"b", "2"}, {"c", "1"}, {"a", "2"}}};
  CHECK(nodes.nodes() == 3);
  CHECK(nodes.ranks(0) == std::vector<std::size_t>{0, 2});
  CHECK(nodes.ranks(1) == std::vector<std::size_t>{1, 4});
  CHECK(nodes.ranks(2) == std::vector<std::size_t>{3});
  CHECK(nodes.node_of(4) == 1);
  CHECK(nodes.first(1) == 1);
}

TEST_CASE("all names of localhost are one node") {
  const NodeMap nodes{{{"localhost", "1"}, {"127.0.0.1", "2"}, {"::1", "3"}}};
  CHECK(nodes.nodes() == 1);
  CHECK(nodes.ranks(0) == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("valid lists are accepted") {
  CHECK_NOTHROW(check_list({{"a", "1"}, {"a", "2"}, {"b", "1"}}, 2));
  CHECK_NOTHROW(check_list({{"localhost", "1"}, {"127.0.0.1", "2"}}));
}

TEST_CASE("invalid lists are refused, naming the task") {
  CHECK_THROWS_WITH_AS(
      check_list({}),
      "The list has no task 0 (it has 0 tasks, numbered from 0). Give every process its own index in the list.",
      dist::InvalidArgument);
  CHECK_THROWS_AS(check_list({{"a", "1"}}, 1), dist::InvalidArgument);
  CHECK_THROWS_AS(check_list({{"a", "1"}, {"", "1"}}), dist::InvalidArgument);
  CHECK_THROWS_AS(check_list({{"a", "1"}, {"b", "0"}}), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(
      check_list({{"a", "1"}, {"b", "1"}, {"a", "1"}}),
      "Worker 2's address a:1 is also worker 0's address (two tasks cannot listen at one address). Give each "
      "task of a host its own port.",
      dist::InvalidArgument);
  const char* mixed =
      "Worker 1's address localhost:1 is reachable only from its own machine (other tasks are on other hosts). List a "
      "network address of that machine.";
  CHECK_THROWS_WITH_AS(check_list({{"a", "1"}, {"localhost", "1"}}), mixed, dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(check_list({{"a", "2"}, {"localhost", "1"}, {"b", "1"}}), mixed, dist::InvalidArgument);
}
