#include <dist/device/hwloc.hpp>

#include <doctest/doctest.h>

#include <stdlib.h>

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

using dist::CpuId;
using dist::Topology;
using Numbers = std::vector<std::size_t>;

namespace {

/// Sets hwloc's environment during its lifetime.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

Numbers first(std::size_t count) {
  Numbers processors(count);
  std::iota(processors.begin(), processors.end(), std::size_t{0});
  return processors;
}

}  // namespace

TEST_CASE("hwloc and the system's files describe this machine in the same way") {
  const Numbers processors = dist::allowed_processors();
  Topology ours = dist::read_topology(processors);
  Topology theirs = dist::read_hwloc_topology(processors);
  // hwloc has more sources for the kinds of cores than the scheduler's capacities.
  for (Topology* each : {&ours, &theirs})
    for (CpuId& place : *each) place.speed = 0;
  CHECK(theirs == ours);
}

TEST_CASE("a synthetic hwloc machine has sockets, nodes, caches, cores and threads") {
  const Environment machine{"HWLOC_SYNTHETIC", "pack:2 [numa] l3:2 l2:2 core:1 pu:2"};
  const Topology places = dist::read_hwloc_topology(first(16));
  REQUIRE(places.size() == 16);
  for (std::size_t i = 0; i < 16; ++i) CHECK(places[i] == CpuId{i, i / 2 * 2, i / 4 * 4, i / 8 * 8, i / 8 * 8});
  CHECK(dist::placement_order(places) == Numbers{0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15});
  // One core of the first socket; of the second one a whole cache and a part of the other.
  CHECK(dist::placement_order(dist::read_hwloc_topology(Numbers{3, 9, 12, 14, 15})) == Numbers{2, 3, 1, 0, 4});
}

TEST_CASE("a socket may have several nodes, and processors may be numbered round-robin") {
  const Environment machine{"HWLOC_SYNTHETIC", "pack:2 die:2 [numa] core:2 pu:1(indexes=die:core)"};
  const Topology places = dist::read_hwloc_topology(first(8));
  for (std::size_t i = 0; i < 8; ++i) CHECK(places[i] == CpuId{i, i, i, i % 4, i % 4 / 2 * 2});
  CHECK(dist::placement_order(places) == Numbers{0, 4, 1, 5, 2, 6, 3, 7});
}

TEST_CASE("processors unknown to hwloc are separate cores") {
  const Environment machine{"HWLOC_SYNTHETIC", "core:2 pu:1"};
  CHECK(dist::read_hwloc_topology(Numbers{1, 7, 9}) == Topology{{1, 1, 1, 1, 1}, {7, 7, 7, 1, 1}, {9, 9, 9, 1, 1}});
}

TEST_CASE("hwloc_devices are a strategy's devices, in the same order") {
  const Numbers order = dist::placement_order(dist::read_hwloc_topology(dist::allowed_processors()));
  for (const std::size_t replicas : {std::size_t{1}, dist::Cpu::count()}) {
    const std::vector<std::string> devices = dist::hwloc_devices(replicas);
    REQUIRE(devices.size() == replicas);
    for (std::size_t replica = 0; replica < replicas; ++replica)
      CHECK(devices[replica] == dist::Cpu::device_name(order[replica]));
    const dist::Mirrored<dist::ThreadAllReduce> strategy{dist::MirroredOptions{.devices = devices}};
    CHECK(strategy.worker_devices() == devices);
  }
}

TEST_CASE("zero replicas, and more than there are devices, are rejected") {
  CHECK_THROWS_AS(dist::hwloc_devices(0), dist::InvalidArgument);
  const std::size_t count = dist::Cpu::count();
  CHECK_THROWS_WITH_AS(
      dist::hwloc_devices(count + 1),
      dist::concat("hwloc cannot place that many replicas (", count + 1, " were requested, there are ", count,
                   " devices). Request at most one replica per device, or give the strategy only a number of replicas.")
          .c_str(),
      dist::InvalidArgument);
}

TEST_CASE("hwloc without a machine throws") {
  const Environment nothing{"HWLOC_COMPONENTS", "-linux,-x86,-no_os"};
  CHECK_THROWS_AS(dist::hwloc_devices(1), dist::Error);
  std::string message;
  try {
    static_cast<void>(dist::read_hwloc_topology(first(1)));
  } catch (const dist::Error& error) {
    message = error.what();
  }
  CHECK(message.find("hwloc cannot read the topology of this machine (") == 0);
}
