#include <dist/nn/loss_scale.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

using Net = nn::Sequential<nn::Input<1>, nn::Dense<1>>;

/// Runs a step in which the last replica's loss has this slope. Returns true if all replicas applied it.
template <class S, class Network, class Scale>
bool step(S& strategy, Network& net, Scale& scale, float slope) {
  const dist::Tensor<float> x{dist::Shape{1, 1}, {2}};
  const auto applied = strategy.run([&](auto& replica) {
    const auto y = net.forward(replica, x);
    const bool is_last = replica.replica_id().index() + 1 == replica.num_replicas_in_sync();
    y.gradient[0] = is_last ? slope : 1;
    scale.apply(replica, y);
    net.backward(replica, 0);
    const bool is_finite = scale.remove(replica, net);
    if (is_finite) CHECK(net.template gradient<0, 0>(replica)[0] == (is_last ? 2 * slope : 2));
    return is_finite ? 1 : 0;
  });
  const auto of_replicas = strategy.local_results(applied);
  for (const int each : of_replicas) CHECK(each == of_replicas[0]);
  return of_replicas[0] == 1;
}

template <class S>
void check(S&& strategy) {
  CAPTURE(strategy.describe());
  nn::Network<Net, nn::Reference> net{strategy};
  nn::LossScale scale{strategy, {.initial = 4, .growth_steps = 2}};
  const auto scope = strategy.scope();
  const std::vector<float> slopes{3, 3, 3, INFINITY, 3, NAN, INFINITY, INFINITY, INFINITY, 3, 3};
  const std::vector<double> values{4, 8, 8, 4, 4, 2, 1, 1, 1, 1, 2};
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    CAPTURE(i);
    CHECK(step(strategy, net, scale, slopes[i]) == std::isfinite(slopes[i]));
    CHECK(scale.value(scope) == values[i]);
  }
}

}  // namespace

TEST_CASE("the scale doubles after good steps, and halves and skips steps with gradients that are not finite") {
  check(dist::Default{});
  check(dist::Mirrored<dist::ThreadAllReduce>{3});
  check(dist::CentralStorage<dist::Cpu>{2});
}

TEST_CASE("a scale that makes finite gradients infinite is halved") {
  dist::Default strategy;
  nn::Network<Net, nn::Reference> net{strategy};
  nn::LossScale scale{strategy, {.initial = 1e30}};
  CHECK_FALSE(step(strategy, net, scale, 1e10F));
  CHECK(scale.value(strategy.scope()) == 5e29);
}

TEST_CASE("LossScale rejects options out of range") {
  dist::Default strategy;
  for (const nn::LossScaleOptions options :
       {nn::LossScaleOptions{.initial = 0.5}, nn::LossScaleOptions{.initial = std::numeric_limits<double>::quiet_NaN()},
        nn::LossScaleOptions{.initial = 1e31}, nn::LossScaleOptions{.growth_steps = 0}})
    CHECK_THROWS_AS((nn::LossScale{strategy, options}), dist::InvalidArgument);
}
