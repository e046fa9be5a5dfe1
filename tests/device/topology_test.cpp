#include <dist/device/topology.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/device/affinity.hpp>

TEST_CASE("keys are compared lexicographically, and the sort is stable") {
  using dist::detail::ProcessorKey;
  struct Entry {
    ProcessorKey key;
    int place;
  };
  std::vector<Entry> entries{{{1, 0, 5}, 0}, {{0, 9}, 1}, {{1, 0, 4}, 2}, {{0, 9}, 3}};
  dist::detail::sort_almost_sorted(entries, [](const Entry& a, const Entry& b) { return a.key < b.key; });
  std::vector<int> places;
  for (const Entry& entry : entries) places.push_back(entry.place);
  CHECK(places == std::vector{1, 3, 2, 0});
}

namespace {

/// Two cores of two threads with a common cache; the second core has half the speed.
struct FastAndSlow {
  static dist::detail::ProcessorList core(std::size_t processor) {
    return dist::detail::ProcessorList{processor < 2 ? "0-1" : "2-3"};
  }
  static dist::detail::ProcessorList cache(std::size_t) { return dist::detail::ProcessorList{"0-3"}; }
  static dist::detail::ProcessorList node(std::size_t) { return dist::detail::ProcessorList{""}; }
  static dist::detail::ProcessorList package(std::size_t) { return dist::detail::ProcessorList{""}; }
  static std::size_t capacity(std::size_t processor) { return processor < 2 ? 1024 : 512; }
};

}  // namespace

TEST_CASE("processor lists are parsed in the kernel's format, invalid ones are empty") {
  const dist::detail::ProcessorList list{"0-3,8,10-11"};
  for (std::size_t processor = 0; processor < 14; ++processor)
    CHECK(list.has(processor) == (processor <= 3 || processor == 8 || processor == 10 || processor == 11));
  CHECK(dist::detail::ProcessorList{"5"}.has(5));
  for (const char* text : {"", " ", "x", "-", "-1", "1-", "3-1", "1,", ",1", "1,,2", "0-3 ", "0x1", "1;2", "1-2-3",
                           "+1", "99999999999999999999", "0-99999999999999999999", "1,x"}) {
    CAPTURE(text);
    CHECK(dist::detail::ProcessorList{text}.ranges().empty());
  }
}

TEST_CASE("resources are numbered by the source's lists, unknown ones are shared by all") {
  constexpr std::array<std::size_t, 4> processors{0, 1, 2, 3};
  const dist::Topology expected{{0, 0, 0, 0, 0, 1}, {1, 0, 0, 0, 0, 1}, {2, 2, 0, 0, 0, 0}, {3, 2, 0, 0, 0, 0}};
  CHECK(dist::detail::topology_from(processors, FastAndSlow{}) == expected);
}

using dist::CpuId;
using dist::Topology;
using Numbers = std::vector<std::size_t>;

namespace {

/// The files of a machine.
class Machine : public support::TemporaryFolder {
 public:
  using TemporaryFolder::write;

  [[nodiscard]] Topology read(const Numbers& processors) const { return dist::read_topology(processors, path()); }

  void write(std::size_t processor, const std::string& file, const std::string& content) const {
    write(dist::concat("cpu/cpu", processor, "/", file), content + "\n");
  }
  void cache(std::size_t processor, std::size_t index, std::size_t level, const std::string& type,
             const std::string& shared_by) const {
    const std::string folder = dist::concat("cache/index", index, "/");
    write(processor, folder + "level", std::to_string(level));
    write(processor, folder + "type", type);
    write(processor, folder + "shared_cpu_list", shared_by);
  }
  void nodes(const std::vector<std::string>& processors) const {
    write("node/online", processors.size() == 1 ? "0\n" : dist::concat("0-", processors.size() - 1, "\n"));
    for (std::size_t node = 0; node < processors.size(); ++node)
      write(dist::concat("node/node", node, "/cpulist"), processors[node] + "\n");
  }
  void core(std::size_t processor, const std::string& threads, const std::string& package) const {
    write(processor, "topology/core_cpus_list", threads);
    write(processor, "topology/package_cpus_list", package);
  }
};

Numbers first(std::size_t count) {
  Numbers processors(count);
  std::iota(processors.begin(), processors.end(), std::size_t{0});
  return processors;
}

/// 2 sockets of 2 cores of 2 threads, with memory and an L3 per socket. `number(socket, core, thread)` returns the
/// processor number.
template <class Number>
void write_two_sockets(const Machine& machine, Number number) {
  std::vector<std::string> nodes;
  for (std::size_t socket = 0; socket < 2; ++socket) {
    Numbers members;
    for (std::size_t i = 0; i < 4; ++i) members.push_back(number(socket, i / 2, i % 2));
    std::sort(members.begin(), members.end());
    std::string list;
    for (const std::size_t each : members) list += (list.empty() ? "" : ",") + std::to_string(each);
    nodes.push_back(list);
    for (std::size_t core = 0; core < 2; ++core) {
      const std::string threads = dist::concat(number(socket, core, 0), ",", number(socket, core, 1));
      for (std::size_t thread = 0; thread < 2; ++thread) {
        const std::size_t processor = number(socket, core, thread);
        machine.core(processor, threads, list);
        machine.cache(processor, 0, 1, "Data", threads);
        machine.cache(processor, 1, 1, "Instruction", threads);
        machine.cache(processor, 2, 2, "Unified", threads);
        machine.cache(processor, 3, 3, "Unified", list);
      }
    }
  }
  machine.nodes(nodes);
}

std::size_t second_threads_last(std::size_t socket, std::size_t core, std::size_t thread) {
  return 4 * thread + 2 * socket + core;
}
std::size_t threads_side_by_side(std::size_t socket, std::size_t core, std::size_t thread) {
  return 4 * socket + 2 * core + thread;
}
std::size_t sockets_in_turn(std::size_t socket, std::size_t core, std::size_t thread) {
  return 4 * thread + 2 * core + socket;
}

}  // namespace

TEST_CASE("two sockets of two cores of two threads, second threads numbered last") {
  const Machine machine;
  write_two_sockets(machine, second_threads_last);
  const Topology expected{{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {2, 2, 2, 2, 2}, {3, 3, 2, 2, 2},
                          {4, 0, 0, 0, 0}, {5, 1, 0, 0, 0}, {6, 2, 2, 2, 2}, {7, 3, 2, 2, 2}};
  CHECK(machine.read(first(8)) == expected);
  CHECK(dist::placement_order(expected) == Numbers{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("two sockets of two cores of two threads, with adjacent threads of a core") {
  const Machine machine;
  write_two_sockets(machine, threads_side_by_side);
  const Topology expected{{0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {2, 2, 0, 0, 0}, {3, 2, 0, 0, 0},
                          {4, 4, 4, 4, 4}, {5, 4, 4, 4, 4}, {6, 6, 4, 4, 4}, {7, 6, 4, 4, 4}};
  CHECK(machine.read(first(8)) == expected);
  CHECK(dist::placement_order(expected) == Numbers{0, 2, 4, 6, 1, 3, 5, 7});
}

TEST_CASE("two sockets with alternating numbers: two replicas use the same socket") {
  const Machine machine;
  write_two_sockets(machine, sockets_in_turn);
  const Topology places = machine.read(first(8));
  CHECK(places[2] == CpuId{2, 2, 0, 0, 0});
  CHECK(places[7] == CpuId{7, 3, 1, 1, 1});
  CHECK(dist::placement_order(places) == Numbers{0, 2, 1, 3, 4, 6, 5, 7});
}

TEST_CASE("two L3 caches per socket: caches and sockets are filled one after another") {
  // 2 sockets of 2 caches of 3 cores of 2 threads: core c has the processors c and 12 + c. The NUMA nodes are the
  // caches, as on some machines, or the sockets.
  for (const bool cache_is_node : {true, false}) {
    CAPTURE(cache_is_node);
    const Machine machine;
    const auto list = [](std::size_t begin, std::size_t count) {
      return dist::concat(begin, "-", begin + count - 1, ",", begin + 12, "-", begin + 12 + count - 1);
    };
    for (std::size_t processor = 0; processor < 24; ++processor) {
      const std::size_t core = processor % 12;
      machine.core(processor, dist::concat(core, ",", core + 12), list(core / 6 * 6, 6));
      machine.cache(processor, 0, 3, "Unified", list(core / 3 * 3, 3));
    }
    machine.nodes(cache_is_node ? std::vector{list(0, 3), list(3, 3), list(6, 3), list(9, 3)}
                                : std::vector{list(0, 6), list(6, 6)});
    const Topology places = machine.read(first(24));
    CHECK(places[17] == CpuId{17, 5, 3, cache_is_node ? 3U : 0U, 0});
    CHECK(dist::placement_order(places) == first(24));

    // A subset: one core per cache of the first socket; two of the second, one with both threads.
    const Topology some = machine.read({1, 4, 7, 8, 9, 18, 20});
    CHECK(some[5] == CpuId{18, 18, 7, 7, 7});
    // The cache with most cores first: 7, 8 and 18 (core 6); then 9 of the same socket. The second thread of core 8 is
    // last.
    CHECK(dist::placement_order(some) == Numbers{2, 3, 5, 4, 0, 1, 6});
  }
}

TEST_CASE("the highest data cache level counts, in any position") {
  const Machine machine;
  for (std::size_t processor = 0; processor < 4; ++processor) {
    machine.cache(processor, 0, 3, "Unified", processor < 2 ? "0-1" : "2-3");
    machine.cache(processor, 1, 1, "Data", std::to_string(processor));
    machine.cache(processor, 2, 4, "Instruction", "0-3");
    machine.cache(processor, 4, 5, "Unified", "0-3");  // level 3 is missing
  }
  const Topology places = machine.read(first(4));
  for (std::size_t i = 0; i < 4; ++i) CHECK(places[i] == CpuId{i, i, i / 2 * 2, 0, 0});
}

TEST_CASE("fast cores are first, even without sibling lists") {
  // Four small cores, then two kinds of large ones with two cores each, one of which is a few percent faster.
  const Machine machine;
  const Numbers capacities{400, 400, 400, 400, 800, 800, 1000, 1024};
  for (std::size_t processor = 0; processor < 8; ++processor) {
    machine.write(processor, "cpu_capacity", std::to_string(capacities[processor]));
    machine.cache(processor, 0, 2, "Unified", processor < 4 ? "0-3" : "4-7");
  }
  const Topology places = machine.read(first(8));
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(places[i] == CpuId{i, i, i < 4 ? 0U : 4U, 0, 0, i < 4 ? 0U : i < 6 ? 1U : 2U});
  CHECK(dist::placement_order(places) == Numbers{6, 7, 4, 5, 0, 1, 2, 3});

  machine.write(3, "cpu_capacity", "unknown");
  for (const CpuId& place : machine.read(first(8))) CHECK(place.speed == 0);
}

TEST_CASE("older kernels have other names for the lists") {
  const Machine machine;
  for (std::size_t processor = 0; processor < 4; ++processor) {
    machine.write(processor, "topology/thread_siblings_list", processor % 2 == 0 ? "0,2" : "1,3");
    machine.write(processor, "topology/core_siblings_list", processor % 2 == 0 ? "0,2" : "1,3");
  }
  CHECK(machine.read(first(4)) == Topology{{0, 0, 0, 0, 0}, {1, 1, 1, 0, 1}, {2, 0, 0, 0, 0}, {3, 1, 1, 0, 1}});
}

TEST_CASE("missing or invalid information gives separate cores on one node and package") {
  const Numbers processors{2, 3, 5, 90};
  const Topology unknown{{2, 2, 2, 2, 2}, {3, 3, 3, 2, 2}, {5, 5, 5, 2, 2}, {90, 90, 90, 2, 2}};
  CHECK(dist::placement_order(unknown) == first(4));
  CHECK(dist::read_topology(processors, "/no/such/folder") == unknown);
  CHECK(dist::read_topology({}, "/no/such/folder").empty());
  CHECK(dist::placement_order({}).empty());

  const std::string long_list = [] {
    std::string list = "0";
    while (list.size() < 40'000) list += ",0";
    return list;
  }();
  for (const std::string& content : {std::string{}, std::string{"\n"}, std::string{"nonsense\n"}, std::string{"7\n"},
                                     std::string("\0\0\0", 3), std::string{"18446744073709551616\n"}, long_list}) {
    CAPTURE(content.substr(0, 40));
    const Machine machine;
    machine.write("node/online", content);
    machine.write("node/node7/cpulist", content);
    for (const std::size_t processor : processors)
      for (const char* file : {"topology/core_cpus_list", "topology/thread_siblings_list", "topology/package_cpus_list",
                               "cache/index0/level", "cache/index0/type", "cache/index0/shared_cpu_list"})
        machine.write(dist::concat("cpu/cpu", processor, "/", file), content);
    CHECK(machine.read(processors) == unknown);
  }
  const Machine folders;
  folders.write("node/online/file", "");
  for (const std::size_t processor : processors) folders.write(processor, "topology/core_cpus_list/file", "");
  CHECK(folders.read(processors) == unknown);
}

TEST_CASE("contradictory lists still give every processor one position") {
  const Machine machine;
  machine.core(0, "0-1", "0-3");
  machine.core(1, "1-2", "1");
  machine.core(2, "0", "2-3");
  machine.core(3, "2-3", "9");
  machine.nodes({"0-2", "1-3"});
  const std::string most = std::to_string(std::numeric_limits<std::size_t>::max());
  machine.cache(2, 0, 1, "Data", "0-" + most);
  const Topology places = machine.read(first(4));
  CHECK(places == Topology{{0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {2, 2, 2, 0, 0}, {3, 3, 2, 3, 0}});
  CHECK(dist::placement_order(places) == Numbers{0, 2, 3, 1});
  machine.write("node/online", "0-" + most);
  CHECK(machine.read(first(4)) == places);
}

TEST_CASE("every prefix of the order has one core per replica, as long as there are cores") {
  const Machine machine;
  write_two_sockets(machine, threads_side_by_side);
  for (unsigned chosen = 1; chosen < 256; ++chosen) {
    Numbers processors;
    for (std::size_t processor = 0; processor < 8; ++processor)
      if ((chosen >> processor & 1U) != 0) processors.push_back(processor);
    const Topology places = machine.read(processors);
    const Numbers order = dist::placement_order(places);
    Numbers sorted = order;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == first(processors.size()));
    const auto core_of = [&](std::size_t position) { return processors[position] / 2; };
    Numbers cores;
    for (const std::size_t processor : processors) cores.push_back(processor / 2);
    cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
    Numbers taken;
    for (std::size_t i = 0; i < cores.size(); ++i) taken.push_back(core_of(order[i]));
    // The socket with more cores is first, and its cores are adjacent.
    const auto in_first_socket = std::count_if(cores.begin(), cores.end(), [](std::size_t core) { return core < 2; });
    const bool second_is_larger = 2 * in_first_socket < static_cast<std::ptrdiff_t>(cores.size());
    if (second_is_larger) std::rotate(cores.begin(), cores.begin() + in_first_socket, cores.end());
    CHECK(taken == cores);
  }
}

TEST_CASE("the topology of this machine is readable") {
  const Numbers processors = dist::allowed_processors();
  const Topology places = dist::read_topology(processors);
  REQUIRE(places.size() == processors.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    CHECK(places[i].processor == processors[i]);
    for (const std::size_t name : {places[i].core, places[i].cache, places[i].node, places[i].package})
      CHECK((name <= processors[i] && std::binary_search(processors.begin(), processors.end(), name)));
  }
  Numbers order = dist::placement_order(places);
  std::sort(order.begin(), order.end());
  CHECK(order == first(processors.size()));
}
