#include <dist/device/affinity.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <dist/device/cpu.hpp>

TEST_CASE("every thread gets the allowed processors of the process, in ascending order") {
  const std::vector<std::size_t> processors = dist::allowed_processors();
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  CHECK(processors.size() == static_cast<std::size_t>(CPU_COUNT(&set)));
  CHECK(std::is_sorted(processors.begin(), processors.end()));
  for (const std::size_t processor : processors) CHECK(CPU_ISSET(processor, &set));
  std::vector<std::size_t> seen;
  std::thread([&] {
    dist::pin_this_thread(processors.back());
    seen = dist::allowed_processors();
  }).join();
  CHECK(seen == processors);
}

TEST_CASE("a mask holds any number of processors") {
  for (const std::size_t processor : {std::size_t{0}, std::size_t{63}, std::size_t{64}, std::size_t{5000}}) {
    dist::detail::ProcessorMask mask{processor};
    REQUIRE(mask.capacity() > processor);
    CHECK(mask.bytes() * 8 == mask.capacity());
    CHECK(!mask.has(processor));
    mask.set(processor);
    for (std::size_t other = 0; other < mask.capacity(); ++other) CHECK(mask.has(other) == (other == processor));
  }
}

TEST_CASE("pinning a thread restricts it to one processor and does not affect other threads") {
  const std::vector<std::size_t> before = dist::allowed_processors();
  for (const std::size_t processor : before) {
    std::vector<std::size_t> inside;
    std::size_t running_on = 0;
    std::thread([&] {
      dist::pin_this_thread(processor);
      inside = dist::detail::processors_of_thread(0);
      running_on = static_cast<std::size_t>(sched_getcpu());
    }).join();
    CHECK(inside == std::vector<std::size_t>{processor});
    CHECK(running_on == processor);
  }
  CHECK(dist::allowed_processors() == before);
}

TEST_CASE("a binding restores the thread's processors unless the thread was bound again") {
  const std::vector<std::size_t> before = dist::allowed_processors();
  std::vector<std::size_t> inside;
  std::vector<std::size_t> afterwards;
  std::vector<std::size_t> of_another;
  std::thread([&] {
    {
      const dist::ThreadBinding binding{{&before.front(), 1}};
      inside = dist::detail::processors_of_thread(0);
    }
    afterwards = dist::detail::processors_of_thread(0);
    {
      const dist::ThreadBinding binding{before};
      dist::pin_this_thread(before.back());
    }
    of_another = dist::detail::processors_of_thread(0);
  }).join();
  CHECK(inside == std::vector<std::size_t>{before.front()});
  CHECK(afterwards == before);
  CHECK(of_another == std::vector<std::size_t>{before.back()});
}

TEST_CASE("binding to a missing processor is ignored") {
  const std::vector<std::size_t> before = dist::allowed_processors();
  std::vector<std::size_t> inside;
  std::thread([&] {
    dist::pin_this_thread(std::size_t{1} << 20);
    inside = dist::detail::processors_of_thread(0);
  }).join();
  CHECK(inside == before);
}

TEST_CASE("a thread is moved without being bound, unless the processor is not allowed") {
  const std::vector<std::size_t> all = dist::allowed_processors();
  for (const std::size_t processor : all) {
    std::vector<std::size_t> afterwards;
    bool arrived = false;
    std::thread([&] {
      // The system may move the thread back at any time, but not every time.
      for (int attempt = 0; attempt < 1000 && !arrived; ++attempt) {
        dist::move_this_thread(processor);
        arrived = static_cast<std::size_t>(sched_getcpu()) == processor;
      }
      afterwards = dist::detail::processors_of_thread(0);
    }).join();
    CHECK(arrived);
    CHECK(afterwards == all);
  }
  for (const std::size_t refused : {std::size_t{8191}, std::size_t{8192}, std::size_t{1} << 40, all.front()}) {
    std::vector<std::size_t> afterwards;
    std::thread([&] {
      dist::pin_this_thread(all.back());
      dist::move_this_thread(refused);
      afterwards = dist::detail::processors_of_thread(0);
    }).join();
    CHECK(afterwards == std::vector<std::size_t>{all.back()});
  }
}

using dist::LocalProcesses;
using dist::detail::local_processes;
using dist::detail::share_of;

namespace {

/// Sets environment variables, and unsets them afterwards.
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

/// Two packages of two cores, whose processors are numbered alternately.
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

TEST_CASE("the launcher's variables give the local rank and local size") {
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

TEST_CASE("Slurm's variables give the number of tasks on this node") {
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
    const Variables another_node{{{"SLURM_NODEID", "3"}}};  // has one task, so rank 1 is invalid
    CHECK(local_processes().count == 1);
  }
  CHECK(local_processes().count == 1);  // without a node
}

TEST_CASE("a launcher started by srun takes precedence over Slurm") {
  const Variables step{{{"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "1"}}};
  const Variables torchrun{{{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "4"}}};
  CHECK(local_processes().number == 2);
  CHECK(local_processes().count == 4);
}

TEST_CASE("processes take parts of equal size, each with processors near each other") {
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

TEST_CASE("replicas of unbound processes are placed on different processors") {
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
