#include <dist/nn/layers/dropout.hpp>

#include <cstddef>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

/// Dropout layers before and in branches, with separate masks.
using Net =
    nn::Sequential<nn::Input<5>, nn::Dropout<40>, nn::Residual<nn::Sequential<nn::Dropout<1, 3>>>, nn::Dense<5>>;

/// Returns outputs and kernel gradients of steps with 7 rows, distributed over the replicas according to `rows`.
template <class Backend, class Strategy>
std::vector<double> run(Strategy& strategy, const std::vector<std::size_t>& rows, int steps = 3) {
  nn::Network<Net, Backend, float> net{strategy, 3};
  dist::Tensor<float> x{dist::Shape{7, 5}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  std::vector<double> all;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<float>> outputs(rows.size()), gradients(rows.size());
    strategy.run([&](auto& replica) {
      const std::size_t mine = replica.replica_id().index();
      std::size_t first = 0;
      for (std::size_t other = 0; other < mine; ++other) first += rows[other];
      const auto y = net.forward(replica, x.view().rows(first, rows[mine]));
      outputs[mine].assign(y.values.data(), y.values.data() + y.values.size());
      for (float& slope : y.gradient.elements()) slope = 1;
      net.backward(replica, 0);
      const auto gradient = net.template gradient<2, 0>(replica);
      gradients[mine].assign(gradient.data(), gradient.data() + gradient.size());
    });
    for (const auto& of_replica : outputs) all.insert(all.end(), of_replica.begin(), of_replica.end());
    for (std::size_t i = 0; i < gradients[0].size(); ++i) {
      double sum = 0;
      for (const auto& of_replica : gradients) sum += static_cast<double>(of_replica[i]);
      all.push_back(sum);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("Dropout drops the same elements with any number of replicas, with and without rows") {
  dist::Default alone;
  const auto expected = run<nn::Reference>(alone, {7});
  for (const std::vector<std::size_t>& rows :
       std::vector<std::vector<std::size_t>>{{4, 3}, {0, 7}, {7, 0}, {3, 3, 1}, {0, 5, 2, 0}}) {
    CAPTURE(rows.size());
    dist::Mirrored<dist::ThreadAllReduce> mirrored{rows.size()};
    dist::CentralStorage<dist::Cpu> central{rows.size()};
    for (const auto& divided :
         {run<nn::Reference>(mirrored, rows), run<nn::OneDnn>(mirrored, rows), run<nn::Reference>(central, rows)}) {
      REQUIRE(divided.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(divided[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("Dropout drops other elements in each step and for each seed, and none in inference") {
  using Alone = nn::Sequential<nn::Input<1000>, nn::Dropout<50>, nn::Dense<1>>;
  dist::Default strategy;
  const auto dropped = [&](std::uint64_t seed, auto mode, int steps) {
    nn::Network<Alone, nn::Reference, float> net{strategy, seed};
    strategy.run([&](auto& replica) {
      for (float& weight : net.template parameter<1, 0>(replica).elements()) weight = 0;
    });
    dist::Tensor<float> x{dist::Shape{1, 1000}};
    for (float& element : x.elements()) element = 1;
    std::vector<bool> zeros;
    strategy.run([&](auto& replica) {
      for (int step = 0; step < steps; ++step) {
        zeros.clear();
        const auto y = net.forward(replica, x, mode);
        y.gradient[0] = 1;
        net.backward(replica, 0);
        for (const float gradient : net.template gradient<1, 0>(replica).elements()) zeros.push_back(gradient == 0);
      }
    });
    return zeros;
  };
  const auto first = dropped(1, nn::training, 1);
  CHECK(dropped(1, nn::training, 1) == first);
  CHECK(dropped(1, nn::training, 2) != first);
  CHECK(dropped(2, nn::training, 1) != first);
  CHECK(dropped(1, nn::inference, 1) == std::vector<bool>(1000, false));
}

TEST_CASE("the state of Dropout is tracked by name, and each layer has its own seed") {
  REQUIRE(Net::state.size() == 2);
  CHECK(Net::state[0].name() == "dropout/seed_generator_state");
  CHECK(Net::state[1].name() == "dropout_1/seed_generator_state");
  dist::Default strategy;
  nn::Network<Net, nn::Reference, float> net{strategy, 3};
  strategy.run([&](auto& replica) {
    const auto first = net.template state<0, 0>(replica);
    const auto second = net.template state<1, 0>(replica);
    CHECK_FALSE(std::equal(first.data(), first.data() + 4, second.data()));
  });
}
