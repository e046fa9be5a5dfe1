#include <dist/strategy/workers.hpp>
// ranks: 1 2 3

#include <doctest/doctest.h>

#include <sched.h>
#include <support/rank_in.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <dist/cluster/mpi/mpi_network.hpp>
#include <dist/comm/mpi/agreement.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/device/affinity.hpp>

static_assert(dist::data::Agreement<dist::WorkerAgreement<dist::mpi::Agreement>>);

TEST_CASE("a single process decides alone, without communication") {
  auto pass = dist::WorkerAgreement<dist::mpi::Agreement>{}.begin();
  pass.start(true);
  CHECK(pass.is_done());
  pass.wait();
  CHECK(pass.any());
  pass.start(false);
  CHECK_FALSE(pass.any());
}

TEST_CASE("several processes agree through MPI in every pass (spec I24, I25)") {
  const dist::mpi::Communicator world{dist::mpi::ref(MPI_COMM_WORLD)};
  const dist::WorkerAgreement agreement{dist::mpi::Agreement{world}};
  for (int round = 0; round < 3; ++round) {
    auto pass = agreement.begin();
    pass.start(world.rank() == 0);
    CHECK(pass.any());
    pass.start(world.rank() != 0);
    CHECK(pass.any() == (world.size() > 1));
    pass.start(false);
    pass.wait();
    CHECK(pass.is_done());
    CHECK_FALSE(pass.any());
  }
}

namespace {

template <class Ops>
using Workers = dist::Workers<Ops, dist::MpiNetwork>;

dist::WorkerGroup world() { return dist::WorkerGroup{dist::mpi::ref(MPI_COMM_WORLD)}; }
std::size_t size() { return support::size_of(MPI_COMM_WORLD); }
/// Restores the processors of this process when it ends.
class Processors {
 public:
  Processors() { sched_getaffinity(0, sizeof before_, &before_); }
  Processors(const Processors&) = delete;
  Processors& operator=(const Processors&) = delete;
  ~Processors() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};
/// Returns the number of workers that may use each processor.
std::vector<int> users_of_processors() {
  std::vector<int> users(CPU_SETSIZE);
  for (const std::size_t processor : dist::allowed_processors())
    if (processor < users.size()) users[processor] = 1;
  MPI_Allreduce(MPI_IN_PLACE, users.data(), CPU_SETSIZE, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return users;
}

template <class Group>
std::string refusal(const dist::MultiWorkerOptions& options) {
  try {
    const Group group{world(), options};
  } catch (const dist::InvalidArgument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("processes of a node use its shared memory for collectives and variables") {
  Workers<dist::RingAllReduce> group{world(), {}};
  CHECK(group.layout().size() == size());
  CHECK(group.layout().groups() == 1);
  float* const mine = reinterpret_cast<float*>(group.memory()->at(0, group.memory()->allocate(4000)));
  const std::span<float> values{mine, 1000};
  for (float& value : values) value = static_cast<float>(group.layout().rank());
  group.between().all_reduce(dist::sum, values);
  for (const float value : values) CHECK(value == static_cast<float>(size() * (size() - 1) / 2));
}

TEST_CASE("without a hierarchy every process is a separate node, which is the default of MPI's policy") {
  dist::MultiWorkerOptions flat;
  flat.hierarchical = false;
  CHECK(Workers<dist::RingAllReduce>{world(), flat}.layout().groups() == size());
  CHECK(Workers<dist::MpiAllReduce>{world(), {}}.layout().groups() == size());
  flat.hierarchical = true;
  CHECK(Workers<dist::MpiAllReduce>{world(), flat}.layout().groups() == 1);
}

TEST_CASE("invalid options are refused on every process (spec A10, H13)") {
  using Group = Workers<dist::RingAllReduce>;
  dist::MultiWorkerOptions options;
  options.communication.timeout = std::chrono::seconds{-1};
  CHECK(refusal<Group>(options).find("timeout") != std::string::npos);
  if (size() == 1) return;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  options = {};
  options.replicas = rank == 1 ? 3 : 2;
  const auto differ = [](const std::string& said, const std::string& what, const std::string& zero,
                         const std::string& one) {
    CAPTURE(said);
    CHECK(said.starts_with("The workers do not have the same " + what));
    CHECK(said.find("(worker 0 has " + zero + ", worker 1 has " + one + ")") != std::string::npos);
  };
  differ(refusal<Group>(options), "number of replicas", "2", "3");
  // Policies whose collectives would wait for each other in different calls.
  differ(rank == 1 ? refusal<Workers<dist::MpiAllReduce>>({}) : refusal<Group>({}), "policy", "RingAllReduce",
         "MpiAllReduce");
  options = {};
  if (rank == 1) options.hierarchical = false;
  differ(refusal<Group>(options), "use of node memory", "true", "false");
  options = {};
  if (rank == 1) options.checks = dist::CollectiveChecks::none;
  differ(refusal<Group>(options), "checks of collectives", "calls", "none");
  options = {};
  options.communication.bytes_per_pack = rank == 1 ? 100 : 200;
  differ(refusal<Group>(options), "size of a pack", "200", "100");
  options = {};
  options.communication.timeout = std::chrono::seconds{10 + rank};
  options.start_timeout = std::chrono::seconds{10 + rank};
  CHECK(refusal<Group>(options) == "nothing was thrown");
  options = {};
  options.hierarchical = false;
  CHECK(refusal<Workers<dist::NodeAllReduce>>(options).find("several nodes") != std::string::npos);
}

TEST_CASE("the default timeout is the environment's, then ten minutes (spec H13)") {
  using Group = Workers<dist::RingAllReduce>;
  unsetenv("DIST_COLLECTIVE_TIMEOUT");
  CHECK(Group{world(), {}}.timeout() == std::chrono::minutes{10});
  setenv("DIST_COLLECTIVE_TIMEOUT", "7", 1);
  CHECK(Group{world(), {}}.timeout() == std::chrono::seconds{7});
  dist::MultiWorkerOptions options;
  options.communication.timeout = std::chrono::seconds{9};
  CHECK(Group{world(), options}.timeout() == std::chrono::seconds{9});
  unsetenv("DIST_COLLECTIVE_TIMEOUT");
}

TEST_CASE("the workers of a host divide its processors, if unbound and sufficient") {
  using Group = Workers<dist::RingAllReduce>;
  const Processors restored;
  std::vector<std::size_t> before;  // all that a worker may use
  const std::vector<int> users = users_of_processors();
  for (std::size_t processor = 0; processor < users.size(); ++processor)
    if (users[processor] != 0) before.push_back(processor);
  if (size() == 1 || before.size() < size()) return;
  dist::bind_this_thread(before);
  REQUIRE(dist::allowed_processors() == before);
  dist::MultiWorkerOptions unbound;
  unbound.pinned = false;
  CHECK(Group{world(), unbound}.owns_cores());
  CHECK(dist::allowed_processors() == before);
  dist::MultiWorkerOptions too_many;
  too_many.replicas = before.size();
  CHECK_FALSE(Group{world(), too_many}.owns_cores());
  CHECK(dist::allowed_processors() == before);
  CHECK(Group{world(), {}}.owns_cores());  // the thread of a program that owns MPI is not bound
  CHECK(dist::allowed_processors() == before);
  dist::MultiWorkerOptions bound;
  bound.pinned = true;
  {
    const Group group{world(), bound};
    CHECK(group.owns_cores());
    CHECK(dist::allowed_processors().size() == before.size() / size());
    const std::vector<int> users_now = users_of_processors();
    CHECK(*std::max_element(users_now.begin(), users_now.end()) == 1);
    // Now each has its own processors, as if a launcher had bound them.
    const std::vector<std::size_t> mine = dist::allowed_processors();
    CHECK(Group{world(), bound}.owns_cores());
    CHECK(dist::allowed_processors() == mine);
    too_many.replicas = mine.size() + 1;
    CHECK_FALSE(Group{world(), too_many}.owns_cores());
  }
  CHECK(dist::allowed_processors() == before);  // as before the strategy
}

TEST_CASE("a process alone needs no MPI, and works equally") {
  Workers<dist::RingAllReduce> group{dist::WorkerGroup{}, {}};
  CHECK(group.layout().size() == 1);
  float value = 3;
  group.between().all_reduce(dist::mean, std::span<float>{&value, 1});
  CHECK(value == 3);
}

}  // namespace
