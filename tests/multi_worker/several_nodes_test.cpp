// Workers on several nodes, some with several workers. The nodes are this machine under other names.
#include <dist/multi_worker.hpp>
// ranks: 2 3 4
// thread levels: funneled multiple

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <conformance/strategy_methods.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/nn/overlapped_all_reduce.hpp>

#include <doctest/doctest.h>
#include <support/small_network.hpp>
#include <support/what_throws.hpp>

namespace {

/// True: ranks alternate between two nodes. False: the first two ranks are one node, and the others another.
bool are_dealt = true;
std::size_t node_of(std::size_t rank) { return are_dealt ? rank % 2 : (rank < 2 ? 0 : 1); }

}  // namespace

/// Replaces the system's function. Once MPI has started, returns the name of the node.
extern "C" int gethostname(char* name, std::size_t size) noexcept {
  int starts = 0, finalised = 0, rank = 0;
  MPI_Initialized(&starts);
  MPI_Finalized(&finalised);
  if (starts != 0 && finalised == 0) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::snprintf(name, size, "node-%zu", node_of(static_cast<std::size_t>(rank)));
  return 0;
}

namespace {

namespace nn = dist::nn;
using conformance::Make;
using support::compute;
using support::SmallBatch;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

dist::MultiWorkerOptions with(std::size_t replicas) {
  dist::MultiWorkerOptions options;
  options.hierarchical = true;
  options.replicas = replicas;
  options.communication.timeout = std::chrono::seconds{30};
  options.communication.bytes_per_pack = 1;
  return options;
}

}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, Make<Workers, 1>, Make<Workers, 2>);

TEST_CASE("workers find their nodes, and collect values in the order of the workers (spec A07, C14)") {
  Workers strategy{2};
  const std::string line = strategy.describe();
  CAPTURE(line);
  CHECK(line.find(" on 2 nodes (") != std::string::npos);
  const std::size_t workers = strategy.num_workers();
  const auto rows = strategy.run([](auto& replica) {
    dist::Tensor<int> row{{replica.replica_id().index() % 3}};
    for (int& value : row.elements()) value = static_cast<int>(replica.replica_id().index());
    return row;
  });
  std::vector<int> expected;
  for (std::size_t id = 0; id < 2 * workers; ++id) expected.insert(expected.end(), id % 3, static_cast<int>(id));
  const dist::Tensor<int> all = strategy.gather(rows, 0);
  CHECK(std::equal(all.elements().begin(), all.elements().end(), expected.begin(), expected.end()));
  std::vector<std::size_t> ranks(workers);
  strategy.workers().all_gather_values("ranks", strategy.worker_rank(), std::span{ranks});
  for (std::size_t worker = 0; worker < workers; ++worker) CHECK(ranks[worker] == worker);
  for (std::size_t root = 0; root < workers; ++root) {
    std::size_t value = strategy.worker_rank();
    strategy.workers().broadcast(root, std::span{&value, 1});
    CHECK(value == root);
  }
}

TEST_CASE_TEMPLATE("gradients reduced in the background are the sum over all replicas of all nodes", Ops,
                   dist::RingAllReduce, dist::MpiAllReduce) {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(replicas);
    dist::MultiWorker<Ops> strategy{with(replicas)};
    nn::Network<support::SmallNet> net{strategy};
    nn::OverlappedAllReduce overlap{strategy, net};
    std::size_t wrong = 0;
    for (std::size_t step = 0; step < 5; ++step) {
      const auto counts = strategy.run([&](auto& replica) {
        const SmallBatch batch{4, replica.replica_id().index() + 10 * step};
        compute(replica, net, batch);
        const std::span<float> gradients = net.gradients().component(replica);
        std::vector<float> expected{gradients.begin(), gradients.end()};
        compute(replica, net, batch, overlap.on_ready(replica));
        replica.all_reduce(dist::sum, std::span<float>{expected});
        overlap.wait(replica);
        std::size_t count = 0;
        for (std::size_t i = 0; i < expected.size(); ++i)
          count += gradients[i] != doctest::Approx(expected[i]).epsilon(1e-5);
        return count;
      });
      for (const std::size_t count : counts) wrong += count;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a worker that throws is named on every node by its number, and all continue together") {
  for (const bool dealt : {true, false}) {
    are_dealt = dealt;
    CAPTURE(dealt);
    Workers strategy{with(1)};
    const std::size_t workers = strategy.num_workers();
    for (std::size_t failing = 0; failing < workers; ++failing) {
      const std::string message = support::what_throws([&] {
        static_cast<void>(strategy.run([&](auto& replica) {
          if (strategy.worker_rank() == failing) throw std::runtime_error("a cosmic ray");
          return replica.all_reduce(dist::sum, 1);
        }));
      });
      CAPTURE(message);
      CHECK(message.find("a cosmic ray") != std::string::npos);
      if (strategy.worker_rank() != failing)
        CHECK(message.find(dist::concat("Worker ", failing, " on host node-", node_of(failing))) != std::string::npos);
      const auto sums = strategy.run([](auto& replica) { return replica.all_reduce(dist::sum, 1); });
      CHECK(strategy.reduce(dist::sum, sums) == static_cast<int>(workers * workers));
    }
  }
  are_dealt = true;
}
