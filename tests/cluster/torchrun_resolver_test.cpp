#include <dist/cluster/torchrun_resolver.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/error.hpp>

using dist::ClusterSpec;
using dist::Environment;
using dist::InvalidArgument;
using dist::Task;
using dist::TaskType;
using dist::TorchrunResolver;

static_assert(dist::ClusterResolver<TorchrunResolver>);

namespace {

/// Returns the variables of a rank in a PyTorchJob of three.
Environment::Variables job_of_three(std::size_t rank) {
  return {
      {"MASTER_ADDR", "job-master-0"}, {"MASTER_PORT", "29500"}, {"RANK", std::to_string(rank)}, {"WORLD_SIZE", "3"}};
}
TorchrunResolver resolver(Environment::Variables variables) {
  return TorchrunResolver{Environment{std::move(variables)}};
}

}  // namespace

TEST_CASE("ranks are workers that connect at the address of worker 0") {
  for (const std::size_t rank : {0U, 1U, 2U}) {
    const TorchrunResolver torchrun = resolver(job_of_three(rank));
    const ClusterSpec cluster = torchrun.cluster_spec();
    CHECK(cluster == ClusterSpec{{TaskType::worker, {"job-master-0:29500", "", ""}}});
    CHECK(cluster.has_meeting_place_only());
    CHECK(torchrun.task() == Task{TaskType::worker, rank});
    CHECK_NOTHROW(validate_multi_worker(cluster, torchrun.task(), torchrun.describe()));
  }
}

TEST_CASE("if torchrun's agent holds the port, the workers use the next one") {
  Environment::Variables variables = job_of_three(1);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  CHECK(resolver(variables).cluster_spec().task_address({TaskType::worker, 0}) == "job-master-0:29501");
  variables["MASTER_PORT"] = "65535";
  CHECK_THROWS_WITH_AS(resolver(variables).cluster_spec(),
                       "The workers cannot use MASTER_PORT for their rendezvous (it would use port 65536, next to "
                       "torchrun's own). Choose a port from 1 to 65534.",
                       InvalidArgument);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  CHECK(resolver(variables).cluster_spec().task_address({TaskType::worker, 0}) == "job-master-0:65535");
}

TEST_CASE("jobs on adjacent ports have different other ports, which only torchrun's agent requires") {
  Environment::Variables variables = job_of_three(1);
  CHECK(resolver(variables).other_ports().empty());
  CHECK_FALSE(resolver(variables).agent_listens());
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  CHECK(resolver(variables).agent_listens());
  std::set<std::uint16_t> ports;
  for (std::size_t master = 29500; master < 29510; ++master) {
    variables["MASTER_PORT"] = std::to_string(master);
    for (const std::uint16_t port : resolver(variables).other_ports()) {
      CHECK(port >= 10'000);
      CHECK(port < 32'000);
      ports.insert(port);
    }
  }
  CHECK(ports.size() == 30);
}

TEST_CASE("workers may be on other hosts unless LOCAL_WORLD_SIZE shows that all are here") {
  Environment::Variables variables = job_of_three(1);
  CHECK(resolver(variables).workers_elsewhere());
  CHECK_FALSE(resolver(variables).local_rank());
  variables["LOCAL_RANK"] = "1";
  variables["LOCAL_WORLD_SIZE"] = "2";
  CHECK(resolver(variables).workers_elsewhere());
  CHECK(resolver(variables).local_rank() == 1);
  variables["LOCAL_WORLD_SIZE"] = "3";
  CHECK_FALSE(resolver(variables).workers_elsewhere());
}

TEST_CASE("an IPv6 address is written with brackets") {
  Environment::Variables variables = job_of_three(0);
  variables["MASTER_ADDR"] = "fd00::7";
  CHECK(resolver(variables).cluster_spec().task_address({TaskType::worker, 0}) == "[fd00::7]:29500");
}

TEST_CASE("without the variables the cluster is empty, and an incomplete set is refused") {
  CHECK(resolver({}).cluster_spec().empty());
  CHECK_FALSE(resolver({}).task());
  for (const char* missing : {"MASTER_PORT", "WORLD_SIZE"}) {
    Environment::Variables variables = job_of_three(0);
    variables.erase(missing);
    CHECK_THROWS_WITH_AS(resolver(variables).cluster_spec(),
                         (std::string{"The environment variable "} + missing +
                          " is not set (MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE belong together). Start with "
                          "torchrun or as a PyTorchJob, and pass all four on.")
                             .c_str(),
                         InvalidArgument);
  }
  Environment::Variables none = job_of_three(0);
  none["WORLD_SIZE"] = "0";
  CHECK_THROWS_AS(resolver(none).cluster_spec(), InvalidArgument);
  Environment::Variables beyond = job_of_three(3);
  CHECK_THROWS_WITH_AS(
      validate_multi_worker(resolver(beyond).cluster_spec(), resolver(beyond).task(), "MASTER_ADDR"),
      "This process is worker 3, but MASTER_ADDR does not list it (the cluster has 3 of type 'worker', the last is "
      "worker 2). Indices count from 0; correct the index of the task, or add its address to the cluster.",
      InvalidArgument);
}
