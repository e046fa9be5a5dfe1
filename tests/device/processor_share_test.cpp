#include <dist/device/processor_share.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <dist/device/cpu.hpp>

using dist::LocalProcesses;
using dist::detail::local_processes;
using dist::detail::share_of;

namespace {

/// Variables that this test sets, and takes back.
class Variables {
 public:
  explicit Variables(std::vector<std::pair<std::string, std::string>> variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }

 private:
  std::vector<std::pair<std::string, std::string>> variables_;
};

/// Two packages of two cores, whose processors the system numbers in turn.
dist::Topology two_packages() {
  dist::Topology places;
  for (std::size_t processor = 0; processor < 4; ++processor)
    places.push_back({.processor = processor,
                      .core = processor,
                      .cache = processor % 2,
                      .node = processor % 2,
                      .package = processor % 2});
  return places;
}

}  // namespace

TEST_CASE("the launcher's variables say which of how many processes of the machine this is") {
  CHECK(local_processes().count == 1);
  for (const auto& [rank, size] : {std::pair{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                   std::pair{"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                                   std::pair{"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
                                   std::pair{"LOCAL_RANK", "LOCAL_WORLD_SIZE"}}) {
    const Variables variables{{{rank, "2"}, {size, "3"}}};
    CHECK(local_processes().number == 2);
    CHECK(local_processes().count == 3);
  }
  const Variables nonsense{{{"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "3"}}};
  CHECK(local_processes().count == 1);
}

TEST_CASE("Slurm's variables say how many tasks of the step this node has") {
  using dist::detail::tasks_of_node;
  constexpr const char* list = "3(x2),2,1";
  constexpr std::size_t of_nodes[] = {3, 3, 2, 1, 0};
  for (std::size_t node = 0; node < 5; ++node) CHECK(tasks_of_node(list, node) == of_nodes[node]);
  CHECK(tasks_of_node("8", 0) == 8);
  CHECK(tasks_of_node("12(x3)", 2) == 12);
  for (const char* nonsense : {"", "x", "2(y3)", "2(x3", "2(x0)", "2;1", "-"}) CHECK(tasks_of_node(nonsense, 1) == 0);

  const Variables step{{{"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "2"}, {"SLURM_STEP_TASKS_PER_NODE", list}}};
  CHECK(local_processes().number == 1);
  CHECK(local_processes().count == 2);
  {
    const Variables another_node{{{"SLURM_NODEID", "3"}}};  // which has one task, and so no number 1
    CHECK(local_processes().count == 1);
  }
  CHECK(local_processes().count == 1);  // no node
}

TEST_CASE("a launcher that srun started is asked before Slurm") {
  const Variables step{{{"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "1"}}};
  const Variables torchrun{{{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "4"}}};
  CHECK(local_processes().number == 2);
  CHECK(local_processes().count == 4);
}

TEST_CASE("processes take parts of the same size, each of processors near each other") {
  const dist::Topology places = two_packages();
  CHECK(share_of(places, {0, 1}) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(share_of(places, {0, 2}) == std::vector<std::size_t>{0, 2});
  CHECK(share_of(places, {1, 2}) == std::vector<std::size_t>{1, 3});
  std::set<std::size_t> taken;
  for (std::size_t number = 0; number < 3; ++number) {
    REQUIRE(share_of(places, {number, 3}).size() == 1);
    taken.insert(share_of(places, {number, 3}).front());
  }
  CHECK(taken.size() == 3);
  CHECK(share_of(places, {4, 5}) == std::vector<std::size_t>{0, 1, 2, 3});  // too few: all use all
}

TEST_CASE("replicas of processes that nobody bound are placed on different processors") {
  const std::size_t all = dist::Cpu::count();
  if (!dist::detail::is_unbound() || all < 2) return;
  std::set<std::size_t> taken;
  for (const char* number : {"0", "1"}) {
    const Variables variables{{{"OMPI_COMM_WORLD_LOCAL_RANK", number}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}};
    const std::vector<std::size_t> devices = dist::Cpu::placement(all);
    CHECK(devices.size() == all / 2);
    for (const std::size_t device : devices) {
      CHECK(device < all);
      CHECK(taken.insert(device).second);
    }
  }
  CHECK(dist::Cpu::placement(all).size() == all);
}
