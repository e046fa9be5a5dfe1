#include <dist/comm/auto_all_reduce.hpp>
// optimised

// Between threads it is ThreadAllReduce (tested below), whose own test covers all types.
#define DIST_TEST_FEW_TYPES
#include <doctest/doctest.h>
#include <conformance/cross_device_ops.hpp>

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <support/simulated_network.hpp>

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, dist::AutoAllReduce);

namespace {

/// Has shared memory, but no small exchange.
struct OnlyShares {
  [[nodiscard]] std::size_t rank() const { return 0; }
  [[nodiscard]] std::size_t size() const { return 1; }
  void barrier() const {}
  void cancel_operands() const noexcept {}
  void publish(const dist::CollectiveCall&, const dist::Operand&) const {}
  template <class T>
  [[nodiscard]] const T* peer(std::size_t) const {
    return nullptr;
  }
  template <class T>
  [[nodiscard]] T* peer_to_write(std::size_t) const {
    return nullptr;
  }
};

}  // namespace

TEST_CASE("the choice depends on the capabilities of members (spec A04, H16, H23)") {
  CHECK(std::is_same_v<dist::AutoAllReduce::Chosen<dist::ThreadCommunicator>, dist::ThreadAllReduce>);
  CHECK(std::is_same_v<dist::AutoAllReduce::Chosen<OnlyShares>, dist::RingAllReduce>);
}

TEST_CASE("members that pass messages choose each call's algorithm by the thresholds") {
  using Network = support::SimulatedNetwork;
  using Auto = dist::AutoAllReduce::On<Network::Communicator>;
  constexpr std::size_t ranks = 8;
  constexpr dist::AlgorithmThresholds thresholds{.tree_up_to = 100, .halving_doubling_up_to = 5000};
  Network network{ranks, {}};
  // A tree sends each value up and down its 7 edges; the others send from every rank, in 3 and in 7 steps each way.
  struct Expected {
    std::size_t bytes;
    std::size_t messages;
  };
  for (const Expected& expected : {Expected{100, 2 * 7}, {5000, 2 * 3 * 8}, {5001, 2 * 7 * 8}}) {
    CAPTURE(expected.bytes);
    static_cast<void>(network.run([&](const Network::Communicator& comm) {
      std::vector<unsigned char> values(expected.bytes, 1);
      Auto{comm, thresholds}.with_timeout(std::chrono::seconds{1}).all_reduce(dist::sum, std::span{values});
      CHECK(values == std::vector<unsigned char>(expected.bytes, ranks));
    }));
    CHECK(network.messages() == expected.messages);
  }
  static_cast<void>(network.run([&](const Network::Communicator& comm) {
    CHECK(Auto{comm}.settings() == thresholds_for(dist::usual_costs, ranks));
  }));
}

TEST_CASE("the halves of an update may use different algorithms") {
  using Network = support::SimulatedNetwork;
  constexpr std::size_t count = 3000;
  for (const dist::AlgorithmThresholds thresholds :
       {dist::AlgorithmThresholds{}, {.tree_up_to = 6000, .halving_doubling_up_to = 0}, {0, 6000}}) {
    Network network{5, {}};
    static_cast<void>(network.run([&](const Network::Communicator& comm) {
      const dist::AutoAllReduce::On<Network::Communicator> ops{comm, thresholds};
      // 16-bit gradients and 32-bit weights: different numbers of bytes, the same shards.
      const std::vector<dist::BFloat16> gradients(count, dist::BFloat16{1.0f});
      std::vector<float> sums(count);
      ops.reduce_scatter(dist::sum, std::span{gradients},
                         [&](std::size_t first, std::span<const dist::BFloat16> reduced) {
                           for (std::size_t i = 0; i < reduced.size(); ++i) sums[first + i] = float{reduced[i]};
                         });
      std::vector<float> mirror(count);
      ops.update_shards(std::span<const float>{sums}, std::span{mirror},
                        [](std::size_t, float, float reduced) { return reduced; });
      CHECK(mirror == std::vector<float>(count, 5.0f));
    }));
  }
}
