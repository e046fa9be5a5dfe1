#include <dist/cluster/slurm_resolver.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/error.hpp>

using dist::ClusterSpec;
using dist::Environment;
using dist::InvalidArgument;
using dist::SlurmResolver;
using dist::Task;
using dist::TaskType;

static_assert(dist::ClusterResolver<SlurmResolver>);

namespace {

/// Returns the variables of one task of `srun -n 3` on two nodes, with 2 tasks on the first.
Environment::Variables step_of_three(std::size_t proc, std::size_t node, std::size_t local) {
  return {{"SLURM_JOB_ID", "1234567"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NODELIST", "node[09-10]"},
          {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
          {"SLURM_STEP_NUM_TASKS", "3"},
          {"SLURM_NTASKS", "3"},
          {"SLURM_PROCID", std::to_string(proc)},
          {"SLURM_NODEID", std::to_string(node)},
          {"SLURM_LOCALID", std::to_string(local)}};
}
SlurmResolver resolver(Environment::Variables variables, SlurmResolver::Options options = {}) {
  return SlurmResolver{std::move(options), Environment{std::move(variables)}};
}
void refuse(const SlurmResolver& slurm, const std::string& message) {
  CHECK_THROWS_WITH_AS(slurm.cluster_spec(), message.c_str(), InvalidArgument);
}

}  // namespace

TEST_CASE("the tasks of a step are workers, host by host (spec M17)") {
  const SlurmResolver slurm = resolver(step_of_three(2, 1, 0));
  CHECK(slurm.cluster_spec() == ClusterSpec{{TaskType::worker, {"node09:54567", "node09:54568", "node10:54567"}}});
  CHECK(slurm.task() == Task{TaskType::worker, 2});
  CHECK_FALSE(slurm.num_accelerators());
  CHECK_NOTHROW(validate_multi_worker(slurm.cluster_spec(), slurm.task(), slurm.describe()));
}

TEST_CASE("each process finds its task under every distribution of ranks (spec M17)") {
  struct Place {
    std::size_t node, local;
  };
  // Ranks 0, 1 and 2 of srun --distribution=block and =cyclic.
  for (const std::vector<Place>& ranks :
       {std::vector<Place>{{0, 0}, {0, 1}, {1, 0}}, std::vector<Place>{{0, 0}, {1, 0}, {0, 1}}}) {
    std::set<Task> tasks;
    for (std::size_t proc = 0; proc < ranks.size(); ++proc) {
      const SlurmResolver slurm = resolver(step_of_three(proc, ranks[proc].node, ranks[proc].local));
      const std::string host = ranks[proc].node == 0 ? "node09:" : "node10:";
      REQUIRE(slurm.task().has_value());
      CHECK(slurm.cluster_spec().task_address(*slurm.task()) == host + std::to_string(54567 + ranks[proc].local));
      tasks.insert(*slurm.task());
    }
    CHECK(tasks.size() == ranks.size());
  }
}

TEST_CASE("jobs take the tasks in the order of their names (spec M17)") {
  const SlurmResolver::Options options{
      .jobs = {{TaskType::worker, 1}, {TaskType::chief, 1}}, .port_base = 8888, .num_accelerators = 4};
  CHECK(resolver(step_of_three(0, 0, 0), options).cluster_spec() ==
        ClusterSpec{{TaskType::chief, {"node09:8888"}}, {TaskType::worker, {"node09:8889"}}});
  CHECK(resolver(step_of_three(0, 0, 0), options).task() == Task{TaskType::chief, 0});
  CHECK(resolver(step_of_three(1, 0, 1), options).task() == Task{TaskType::worker, 0});
  CHECK_FALSE(resolver(step_of_three(2, 1, 0), options).task());
  CHECK(resolver(step_of_three(0, 0, 0), options).num_accelerators() == 4);
  const SlurmResolver::Options servers{
      .jobs = {{TaskType::worker, 1}, {TaskType::parameter_server, 1}, {TaskType::evaluator, 1}}};
  CHECK(resolver(step_of_three(0, 0, 0), servers).task() == Task{TaskType::evaluator, 0});
  CHECK(resolver(step_of_three(1, 0, 1), servers).task() == Task{TaskType::parameter_server, 0});
  CHECK(resolver(step_of_three(2, 1, 0), servers).task() == Task{TaskType::worker, 0});
  refuse(resolver(step_of_three(0, 0, 0), {.jobs = {{TaskType::worker, 4}}}),
         "Requested 4 tasks but only 3 were assigned (SLURM_STEP_NUM_TASKS is 3). Start with srun -n 4.");
}

TEST_CASE("outside a step the missing variable is named (spec M17)") {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS"}) {
    Environment::Variables variables = step_of_three(0, 0, 0);
    variables.erase(name);
    refuse(resolver(variables),
           std::string("The environment variable ") + name +
               " is not set (this process is not inside a Slurm step). Start the program with srun, "
               "also in a batch script.");
  }
  Environment::Variables variables = step_of_three(0, 0, 0);
  variables.erase("SLURM_NODEID");
  CHECK_THROWS_AS(resolver(variables).task(), InvalidArgument);
}

TEST_CASE("inconsistent variables are refused (spec M17)") {
  Environment::Variables variables = step_of_three(0, 0, 0);
  variables["SLURM_STEP_NUM_TASKS"] = "4";
  refuse(
      resolver(variables),
      "Slurm's variables contradict each other (SLURM_STEP_NODELIST has 2 hosts, SLURM_STEP_TASKS_PER_NODE has 3 tasks "
      "on 2, SLURM_STEP_NUM_TASKS is 4). Start with srun, and pass all its variables on unchanged.");
  CHECK_THROWS_WITH_AS(resolver(step_of_three(2, 1, 1)).task(),
                       "This process is not among the tasks of its Slurm step (SLURM_NODEID=1 and SLURM_LOCALID=1, but "
                       "the step has 2 nodes and 1 tasks on this one). Start with srun, and pass all its variables on.",
                       InvalidArgument);
  CHECK_THROWS_AS(resolver(step_of_three(2, 2, 0)).task(), InvalidArgument);
}

TEST_CASE("ports are derived from the job number, or given (spec M17)") {
  Environment::Variables variables = step_of_three(0, 0, 0);
  variables["SLURM_JOB_ID"] = "7";
  CHECK(resolver(variables).cluster_spec().task_address({TaskType::worker, 0}) == "node09:50007");
  variables.erase("SLURM_JOB_ID");
  variables["SLURM_JOBID"] = "8";
  CHECK(resolver(variables).cluster_spec().task_address({TaskType::worker, 0}) == "node09:50008");
  refuse(resolver(variables, {.port_base = 65535}),
         "Slurm's node node09 has more tasks than there are ports (2 tasks from port 65535 on). Choose a lower "
         "port_base.");
}

TEST_CASE("SLURM_PROCID is the position if the other variables are missing (spec M17)") {
  for (const std::size_t rank : {0U, 2U}) {
    Environment::Variables variables = step_of_three(rank, 0, 0);
    variables.erase("SLURM_NODEID");
    variables.erase("SLURM_LOCALID");
    CHECK(resolver(variables).task() == Task{TaskType::worker, rank});
  }
  Environment::Variables beyond = step_of_three(3, 0, 0);
  beyond.erase("SLURM_NODEID");
  beyond.erase("SLURM_LOCALID");
  CHECK_THROWS_WITH_AS(static_cast<void>(resolver(beyond).task()),
                       "This process is not among the tasks of its Slurm step (SLURM_PROCID=3, but the step has 3 "
                       "tasks). Start with srun, and pass all its variables on.",
                       InvalidArgument);
}
