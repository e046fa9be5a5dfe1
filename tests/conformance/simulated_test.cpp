// The suite of strategies with 1 to 4 workers on a simulated network, in one process.
#include <conformance/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <conformance/strategy.hpp>
#include <dist/comm/messages/algorithm_thresholds.hpp>

using conformance::Make;
using Workers = conformance::SimulatedStrategy;

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make<Workers, 1>, Make<Workers, 2>);

namespace {

/// Returns the virtual seconds of a step in which the replicas of `workers` workers sum `numbers` numbers.
double step_seconds(std::size_t workers, std::size_t numbers) {
  constexpr dist::MessageCosts costs{.latency = 10e-6, .per_byte = 0.8e-9};
  support::SimulatedNetwork network{workers, costs, support::Payload::travels, support::RunOn::threads};
  double longest = 0;
  network.run([&](const support::SimulatedNetwork::Communicator& comm) {
    conformance::SimulatedStrategy strategy{comm, 1};
    const double begins = comm.seconds();
    strategy.run([&](auto& replica) {
      std::vector<float> values(numbers, static_cast<float>(replica.replica_id().index()));
      replica.all_reduce(dist::sum, std::span<float>{values});
      CHECK(values.back() == static_cast<float>(workers * (workers - 1) / 2));
    });
    longest = std::max(longest, comm.seconds() - begins);
  });
  return longest;
}

}  // namespace

TEST_CASE("a step takes the virtual time of its messages") {
  for (std::size_t workers = 2; workers <= 4; ++workers) {
    CAPTURE(workers);
    constexpr std::size_t numbers = 1 << 20;
    const double more = step_seconds(workers, 2 * numbers) - step_seconds(workers, numbers);
    const auto share = static_cast<double>(workers - 1) / static_cast<double>(workers);
    CHECK(more == doctest::Approx(2 * share * static_cast<double>(numbers * sizeof(float)) * 0.8e-9).epsilon(0.05));
  }
}
