#include <dist/cluster/initialize_tpu_system.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <support/fake_pjrt/fake_pjrt.hpp>
#include <support/what_throws.hpp>

using dist::Environment;
using dist::TopologyMismatch;
using dist::TpuResolver;
using dist::pjrt::Client;

namespace {

using Values = std::vector<std::pair<std::string, std::int64_t>>;

/// Creates a client of the fake plugin with these values.
Client client(const Values& values) {
  dist::pjrt::ClientOptions options{.plugin = fake_pjrt::plugin()};
  for (const auto& [name, value] : values) options.values.emplace_back(name, value);
  return Client{options};
}

/// Process 1 of two, with 4 devices each.
const Values second_of_two{{"num_nodes", 2}, {"node_id", 1}};
const Environment::Variables two_hosts{{"TPU_WORKER_HOSTNAMES", "a,b"},
                                       {"TPU_WORKER_ID", "1"},
                                       {"TPU_ACCELERATOR_TYPE", "v4-16"},
                                       {"TPU_CHIPS_PER_PROCESS_BOUNDS", "2,2,1"}};

std::string refusal(const Values& values, Environment::Variables variables, TpuResolver::Options options = {}) {
  const TpuResolver resolver{std::move(options), Environment{std::move(variables)}};
  return support::what_throws<TopologyMismatch>(
      [&] { static_cast<void>(dist::initialize_tpu_system(resolver, client(values))); });
}

}  // namespace

TEST_CASE("a plugin that matches the cluster is ready, and its topology is described (spec M22)") {
  const dist::pjrt::Topology topology =
      dist::initialize_tpu_system(TpuResolver{{}, Environment{two_hosts}}, client(second_of_two));
  CHECK(topology.devices_of_processes() == std::map<std::size_t, std::size_t>{{0, 4}, {1, 4}});
  CHECK(to_string(topology).find("fake tpu: 8 devices of 2 processes, chips in a mesh of 2x2x1") == 0);
  CHECK(dist::initialize_tpu_system(client({{"devices", 3}})).devices.size() == 3);
}

TEST_CASE("a plugin with other processes or devices than the cluster is refused (spec M22)") {
  const std::string plugin = "The PJRT plugin '" + fake_pjrt::plugin() + "'";
  CHECK(refusal({}, two_hosts) == plugin +
                                      " and TPU_WORKER_HOSTNAMES do not have the same processes (the plugin's number "
                                      "of processes is 1, and the cluster's is 2). Set the variables of the TPU in all "
                                      "processes, and start the number of processes that they specify.");
  CHECK(refusal(second_of_two, {})
            .find("the plugin's number of processes is 2, and the cluster's is 1, this process alone") !=
        std::string::npos);
  Values first = second_of_two;
  first.emplace_back("process", 0);
  CHECK(refusal(first, two_hosts) ==
        plugin +
            " and TPU_WORKER_HOSTNAMES number this process differently (it is 0 for the plugin, and 1 in the cluster). "
            "Give TPU_WORKER_ID and CLOUD_TPU_TASK_ID the same number.");
  Values uneven = second_of_two;
  uneven.emplace_back("more_devices_of_the_last", 1);
  CHECK(refusal(uneven, two_hosts) ==
        "The processes of the TPU do not have the same number of devices (process 0 has 4, and process 1 has 5). Use "
        "the same number of chips in all processes (TPU_VISIBLE_CHIPS).");
  // tf.distribute raises RuntimeError if the number of cores is not the expected one.
  CHECK(refusal(second_of_two, two_hosts, {.num_accelerators = 8}).find("each process has 4, but 8 were expected") !=
        std::string::npos);
}
