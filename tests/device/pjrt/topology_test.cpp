#include <dist/device/pjrt/topology.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <support/fake_pjrt/fake_pjrt.hpp>

using dist::pjrt::Client;
using dist::pjrt::DeviceDescription;
using dist::pjrt::Topology;

TEST_CASE("a topology has the devices of all processes, and the coordinates of their chips") {
  const Client client{
      {.plugin = fake_pjrt::plugin(),
       .values = {{"devices", std::int64_t{3}}, {"num_nodes", std::int64_t{2}}, {"node_id", std::int64_t{1}}}}};
  const Topology topology = topology_of(client);
  CHECK(topology.platform == "fake tpu");
  REQUIRE(topology.devices.size() == 6);
  CHECK(topology.devices[4] == DeviceDescription{4, "TPU v0", 1, {0, 1, 0}, 1});
  CHECK(topology.devices_of_processes() == std::map<std::size_t, std::size_t>{{0, 3}, {1, 3}});
  CHECK(topology.mesh() == std::vector<std::size_t>{2, 2, 1});
  CHECK(to_string(topology) ==
        "fake tpu: 6 devices of 2 processes, chips in a mesh of 2x2x1\n"
        "process 0: TPU v0 0 at (0, 0, 0), core 0; TPU v0 1 at (0, 0, 0), core 1; TPU v0 2 at (1, 0, 0), core 0\n"
        "process 1: TPU v0 3 at (0, 1, 0), core 0; TPU v0 4 at (0, 1, 0), core 1; TPU v0 5 at (1, 1, 0), core 0");
  CHECK(client.device(0).id == 3);
}

TEST_CASE("a plugin without coordinates has no mesh") {
  const Topology silent = topology_of(Client{
      {.plugin = fake_pjrt::plugin(), .values = {{"devices", std::int64_t{1}}, {"coordinates", std::int64_t{0}}}}});
  CHECK(silent.mesh().empty());
  CHECK(to_string(silent) == "fake tpu: 1 device of 1 process\nprocess 0: TPU v0 0");
  CHECK(topology_of(Client{{.values = {{"cpu_device_count", std::int64_t{2}}}}}).devices_of_processes() ==
        std::map<std::size_t, std::size_t>{{0, 2}});
  CHECK(Topology{}.mesh().empty());
  CHECK(Topology{"tpu", {{0, "TPU", 0, {5, 2}}, {1, "TPU", 0, {}}}}.mesh().empty());
  CHECK(Topology{"tpu", {{0, "TPU", 0, {5, 2}}, {1, "TPU", 0, {4, 2}}}}.mesh() == std::vector<std::size_t>{2, 1});
}
