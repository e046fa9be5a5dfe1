// Scaling of an all-reduce, and of the agreement before it, to 1,024 nodes: the library's algorithms and protocol in
// the virtual time of the tests' simulated network, with the constants of several networks. Only the constants of
// this machine are measured.
//
//   bench_simulated_network [MOST_NODES]
#include <array>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/messages/algorithm_thresholds.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>

#include <support/simulated_meeting.hpp>
#include <support/simulated_network.hpp>

#include "support/arguments.hpp"
#include "support/measured_costs.hpp"

namespace {

using support::SimulatedNetwork;

struct Constants {
  std::string name;
  dist::MessageCosts costs;
};
/// Nominal link rate and typical MPI latency; memory is reduced and copied at 10 GB/s.
const Constants nominal[] = {
    {"10 Gbit/s Ethernet (10 us, 1.25 GB/s)", dist::usual_costs},
    {"InfiniBand HDR (1 us, 25 GB/s)",
     {.latency = 1e-6, .per_byte = 1 / 25e9, .per_reduced_byte = 1 / 10e9, .per_copied_byte = 1 / 10e9}},
};
/// Nodes with the message costs of two processes of this machine over TCP.
Constants this_machine() {
  const dist::MessageCosts costs = bench::measured_costs();
  std::array<char, 160> name{};
  std::snprintf(name.data(), name.size(),
                "two processes of this machine, TCP (%.1f us, %.2f GB/s; combined %.1f GB/s, copied %.1f GB/s)",
                1e6 * costs.latency, 1e-9 / costs.per_byte, 1e-9 / costs.per_reduced_byte,
                1e-9 / costs.per_copied_byte);
  return {name.data(), costs};
}
constexpr std::size_t sizes[] = {std::size_t{4} << 10, std::size_t{256} << 10, std::size_t{8} << 20};
constexpr std::size_t node_counts[] = {2, 4, 16, 64, 256, 1024};

/// Returns microseconds.
template <class MakeCollectives>
double all_reduce_time(std::size_t nodes, std::size_t bytes, const dist::MessageCosts& costs, MakeCollectives&& make) {
  SimulatedNetwork network{nodes, costs, support::Payload::stays};
  std::vector<double> all_values(bytes / sizeof(double));
  constexpr support::Metered<dist::Sum> sum;
  return 1e6 * network.run([&](const SimulatedNetwork::Communicator& comm) {
    make(comm).all_reduce(sum, std::span{all_values});
  });
}

template <class Policy>
double all_reduce_time(std::size_t nodes, std::size_t bytes, const dist::MessageCosts& costs) {
  return all_reduce_time(nodes, bytes, costs, [](const SimulatedNetwork::Communicator& comm) {
    return typename Policy::template On<SimulatedNetwork::Communicator>{comm};
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 1, "[MOST_NODES]",
                                   "Prints the microseconds of virtual time of all-reduces between simulated nodes."};
  const auto most = static_cast<std::size_t>(arguments.number(0, 1024));
  std::vector<Constants> networks{std::begin(nominal), std::end(nominal)};
  networks.push_back(this_machine());
  for (const Constants& network : networks) {
    std::printf("%s\n%9s %6s %12s %12s %12s %12s\n", network.name.c_str(), "bytes", "nodes", "tree", "halving", "ring",
                "auto");
    for (const std::size_t bytes : sizes)
      for (const std::size_t nodes : node_counts) {
        if (nodes > most) continue;
        const auto by_choice =
            all_reduce_time(nodes, bytes, network.costs, [&](const SimulatedNetwork::Communicator& comm) {
              return dist::AutoAllReduce::On<SimulatedNetwork::Communicator>{comm,
                                                                             thresholds_for(network.costs, nodes)};
            });
        std::printf("%9zu %6zu %12.1f %12.1f %12.1f %12.1f\n", bytes, nodes,
                    all_reduce_time<dist::TreeAllReduce>(nodes, bytes, network.costs),
                    all_reduce_time<dist::HalvingDoublingAllReduce>(nodes, bytes, network.costs),
                    all_reduce_time<dist::RingAllReduce>(nodes, bytes, network.costs), by_choice);
        std::fflush(stdout);
      }
    std::printf("%9s %6s %12s %12s\n", "agreement", "nodes", "messages", "time");
    for (const std::size_t nodes : node_counts) {
      if (nodes > most) continue;
      const support::AgreementCost cost = support::agreement_cost(nodes, network.costs);
      std::printf("%9s %6zu %12zu %12.1f\n", "", nodes, cost.messages, 1e6 * cost.seconds);
    }
  }
}
