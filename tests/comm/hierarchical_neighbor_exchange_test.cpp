// Neighbour exchange between replicas of several processes: in the memory of one node, on several nodes, and by
// messages only. The nodes are this machine under different names.
#include <dist/comm/hierarchical_neighbor_exchange.hpp>
// ranks: 1 2 3 4

#include <dist/multi_worker.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/neighbor_exchange.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>

#include <doctest/doctest.h>
#include <support/rank_in.hpp>

namespace {

enum class Nodes { one, halves, dealt };
Nodes nodes = Nodes::one;

}  // namespace

/// Replaces the system's function: returns the simulated node name of this process.
extern "C" int gethostname(char* name, std::size_t size) noexcept {
  int starts = 0, finalised = 0;
  MPI_Initialized(&starts);
  MPI_Finalized(&finalised);
  const std::size_t rank = starts != 0 && finalised == 0 ? support::rank_in(MPI_COMM_WORLD) : 0;
  const std::size_t node = nodes == Nodes::one ? 0 : nodes == Nodes::halves ? rank / 2 : rank % 2;
  std::snprintf(name, size, "node-%zu", node);
  return 0;
}

namespace {

using conformance::Make;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

template <class S, std::size_t replicas, Nodes where = Nodes::one, bool in_memory = true>
struct On {
  static std::unique_ptr<S> make() {
    nodes = where;
    return std::make_unique<S>(dist::MultiWorkerOptions{
        .replicas = replicas, .hierarchical = in_memory, .communication = {.timeout = std::chrono::seconds{30}}});
  }
};

}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, On<Workers, 1>, On<Workers, 2>, On<Workers, 3>,
                               On<Workers, 1, Nodes::halves>, On<Workers, 2, Nodes::halves>,
                               On<Workers, 1, Nodes::dealt>, On<Workers, 2, Nodes::dealt>,
                               On<Workers, 1, Nodes::one, false>, On<Workers, 2, Nodes::one, false>,
                               On<dist::MultiWorker<dist::MpiAllReduce>, 2, Nodes::one, false>);

TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, On<Workers, 2>, On<Workers, 2, Nodes::halves>,
                               On<Workers, 1, Nodes::dealt>, On<Workers, 2, Nodes::one, false>);

TEST_CASE("a failed worker is reported by its neighbours before the deadline") {
  for (const Nodes where : {Nodes::one, Nodes::dealt}) {
    nodes = where;
    Workers strategy{{.replicas = 2, .hierarchical = true, .communication = {.timeout = std::chrono::seconds{60}}}};
    if (strategy.num_workers() == 1) return;
    const std::size_t size = strategy.num_replicas_in_sync();
    const auto begin = std::chrono::steady_clock::now();
    try {
      strategy.run([&](auto& replica) {
        const std::size_t id = replica.replica_id().index();
        if (id == size - 1) throw std::runtime_error("the last one fails");
        const std::vector<double> out(10);
        std::vector<double> in(10);
        replica.neighbor_exchange({{(id + 1) % size, out}}, {{(id + size - 1) % size, in}});
      });
      FAIL("no error");
    } catch (const dist::Error& error) {
      CHECK(std::string{error.what()}.find("the last one fails") != std::string::npos);
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{30});
    MPI_Barrier(MPI_COMM_WORLD);
  }
}
