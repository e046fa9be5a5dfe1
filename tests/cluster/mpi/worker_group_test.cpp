#include <dist/cluster/mpi/worker_group.hpp>
#include <dist/cluster/mpi/world_host.hpp>
// ranks: 1 2 3 4

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>

#include <doctest/doctest.h>
#include <support/rank_in.hpp>

namespace {

using dist::Task;
using dist::TaskType;
using support::rank_in;
using support::size_of;
using namespace std::chrono_literals;

const std::size_t& rank() {
  static const std::size_t rank = rank_in(MPI_COMM_WORLD);
  return rank;
}
const std::size_t& size() {
  static const std::size_t size = size_of(MPI_COMM_WORLD);
  return size;
}
std::vector<std::string> addresses(std::size_t count, std::size_t first_port = 2000) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back("10.0.0.1:" + std::to_string(first_port + i));
  return all;
}
std::string refusal(const dist::ClusterSpec& cluster, Task task) {
  try {
    dist::WorkerGroup{dist::SimpleResolver{cluster, task}, 5s};
  } catch (const dist::InvalidArgument& error) {
    return error.what();
  }
  return "nothing was thrown";
}
bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("'" << part << "' is not in: " << text);
  return found;
}

TEST_CASE("without a cluster the ranks of MPI_COMM_WORLD are the workers (spec A08)") {
  const dist::WorkerGroup world{dist::SimpleResolver{{}, std::nullopt}, 5s};
  CHECK_FALSE(world.is_alone());
  CHECK(rank_in(world.comm().get()) == rank());
  CHECK(size_of(world.comm().get()) == size());
  REQUIRE(world.task());
  CHECK(*world.task() == Task{TaskType::worker, rank()});
  CHECK(world.source() == "MPI_COMM_WORLD");
}

TEST_CASE("the maximum start timeout does not overflow, and zero is refused") {
  if (rank() == 0) std::this_thread::sleep_for(300ms);  // the others are watched while they wait
  CHECK_NOTHROW(dist::WorkerGroup(dist::SimpleResolver{{}, std::nullopt}, std::chrono::milliseconds::max()));
  CHECK_THROWS_WITH_AS(
      dist::WorkerGroup(dist::SimpleResolver{{}, std::nullopt}, 0ms),
      "The workers have no time to start (the start timeout is 0 ms). Set a positive timeout, such as 5 min.",
      dist::InvalidArgument);
}

TEST_CASE("a cluster puts the ranks into the order of the tasks, chief first (spec A07, M11)") {
  // The last rank is the chief, the second to last worker 0, and so on.
  const dist::ClusterSpec cluster{{TaskType::chief, addresses(1, 1000)}, {TaskType::worker, addresses(size() - 1)}};
  const std::size_t number = size() - 1 - rank();
  const Task task = number == 0 ? Task{TaskType::chief, 0} : Task{TaskType::worker, number - 1};
  const dist::WorkerGroup world{dist::SimpleResolver{cluster, task}, 5s};
  CHECK(rank_in(world.comm().get()) == number);
  CHECK(size_of(world.comm().get()) == size());
  CHECK(*world.task() == task);
}

TEST_CASE("an evaluator is left out of the workers and is alone (spec A09)") {
  if (size() == 1) return;
  const dist::ClusterSpec cluster{{TaskType::worker, addresses(size() - 1)}, {TaskType::evaluator, addresses(1, 1000)}};
  const bool evaluates = rank() == 0;
  const Task task = evaluates ? Task{TaskType::evaluator, 0} : Task{TaskType::worker, rank() - 1};
  const dist::WorkerGroup world{dist::SimpleResolver{cluster, task}, 5s};
  CHECK(world.is_alone() == evaluates);
  if (!evaluates) {
    CHECK(size_of(world.comm().get()) == size() - 1);
    CHECK(rank_in(world.comm().get()) == rank() - 1);
  }
}

TEST_CASE("clusters that differ, and duplicate or missing tasks, are reported on every rank") {
  if (size() == 1) return;
  const std::string others =
      refusal({{TaskType::worker, addresses(size(), rank() == 1 ? 3000 : 2000)}}, {TaskType::worker, rank()});
  CHECK(has(others, "Ranks 0 and 1 of MPI_COMM_WORLD do not have the same cluster"));
  const dist::ClusterSpec cluster{{TaskType::worker, addresses(size())}};
  const std::string twice = refusal(cluster, {TaskType::worker, rank() == 1 ? 0 : rank()});
  CHECK(has(twice, "Ranks 0 and 1 of MPI_COMM_WORLD are both worker 0"));
  const std::string missing = refusal({{TaskType::worker, addresses(size() + 1)}}, {TaskType::worker, rank()});
  CHECK(has(missing, "No process of MPI_COMM_WORLD is worker " + std::to_string(size())));
  const std::string none = refusal(cluster, {TaskType::worker, rank() == 0 ? size() : rank()});
  CHECK(has(none, "Rank 0 of MPI_COMM_WORLD cannot join the cluster"));
  const std::string server =
      refusal({{TaskType::worker, addresses(size() - 1)}, {TaskType::parameter_server, {"a:1"}}},
              rank() == 0 ? Task{TaskType::parameter_server, 0} : Task{TaskType::worker, rank() - 1});
  CHECK(has(server, "Rank 0 of MPI_COMM_WORLD cannot join the cluster"));
}

TEST_CASE("a communicator of the program is used unchanged") {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, static_cast<int>(size() - rank()), &reversed);
  {
    const dist::WorkerGroup world{dist::mpi::ref(reversed)};
    CHECK(rank_in(world.comm().get()) == size() - 1 - rank());
    CHECK_FALSE(world.is_alone());
  }
  CHECK(size_of(reversed) == size());
  MPI_Comm_free(&reversed);
}

TEST_CASE("MPI_COMM_NULL is refused") {
  CHECK_THROWS_WITH_AS(dist::WorkerGroup{dist::mpi::ref(MPI_COMM_NULL)},
                       "An MPI communicator is not a group of workers (it is MPI_COMM_NULL, which processes outside of "
                       "a group receive). Give a communicator of one group, only in the processes of this group.",
                       dist::InvalidArgument);
}

TEST_CASE("a default WorkerGroup is one process alone") { CHECK(dist::WorkerGroup{}.is_alone()); }

}  // namespace
