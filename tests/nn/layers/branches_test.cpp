#include <dist/nn/layers/branches.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

#include <dist/device/cpu.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/concatenate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"
#include "nn/run_normalized.hpp"
#include "nn/steady_steps.hpp"

namespace nn = dist::nn;

namespace {

template <class Statistics>
using Body = nn::Sequential<nn::BatchNormalization<Statistics>, nn::ReLU, nn::Conv2D<3, 3, nn::Linear, 1, nn::Same>,
                            nn::BatchNormalization<Statistics>>;
/// State in both branches, in one branch, and in a nested branch.
template <class Statistics>
using Net =
    nn::Sequential<nn::Input<5, 4, 1>, nn::Conv2D<3, 2>,
                   nn::Residual<Body<Statistics>, nn::Sequential<nn::Conv2D<3, 1>, nn::BatchNormalization<Statistics>>>,
                   nn::Concatenate<nn::Residual<Body<Statistics>>, nn::Sequential<>>, nn::Flatten, nn::Dense<2>>;

}  // namespace

TEST_CASE("layers in branches receive their state, the mode and the replica, with and without rows") {
  using Synchronized = Net<nn::SynchronizedStatistics>;
  CHECK(Synchronized::uses_replica);
  REQUIRE(Synchronized::state.size() == 10);
  CHECK(Synchronized::state[4].name() == "batch_normalization_2/moving_mean");
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  CHECK(dist_test::difference(dist_test::run_normalized<Synchronized, nn::OneDnn, float>(strategy),
                              dist_test::run_normalized<Synchronized, nn::Reference, double>(strategy)) < 1e-5);
}

TEST_CASE("gradients through branches with normalisation agree with central differences") {
  using Normalized = Net<nn::PerReplicaStatistics>;
  dist::Default strategy;
  strategy.run([](auto& replica) {
    using Replica = std::remove_cvref_t<decltype(replica)>;
    nn::Workspace<Normalized, nn::Reference, double> workspace;
    const auto batch = dist_test::numbers(4 * Normalized::InputShape::elements, 2);
    const dist::TensorView<const double> x{batch.data(), Normalized::InputShape::shape().stacked(4)};
    auto parameters = dist_test::numbers(Normalized::padded_count, 1);
    std::vector<double> state(Normalized::padded_state_count, 0.0);
    const auto targets = dist_test::numbers(8, 3);
    const auto loss = [&] {
      const nn::ForwardPass<Replica, nn::Training, double> pass{replica, state.data()};
      const auto y = workspace.forward(parameters, x, pass);
      double sum = 0;
      for (std::size_t i = 0; i < 8; ++i) {
        sum += targets[i] * y.values[i] + y.values[i] * y.values[i] / 2;
        y.gradient[i] = targets[i] + y.values[i];
      }
      return sum;
    };
    static_cast<void>(loss());
    std::vector<double> gradients(Normalized::padded_count, 99.0);
    workspace.backward(parameters, gradients, replica);
    for (const nn::Parameter& parameter : Normalized::parameters)
      for (std::size_t i = 0; i < parameter.shape.elements(); ++i) {
        constexpr double step = 1e-5;
        double& changed = parameters[parameter.offset + i];
        const double before = changed;
        changed = before + step;
        const double above = loss();
        changed = before - step;
        const double below = loss();
        changed = before;
        CAPTURE(parameter.name());
        CAPTURE(i);
        CHECK(gradients[parameter.offset + i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-6).scale(10));
      }
  });
}

TEST_CASE("a step through branches with a known batch size allocates no memory") {
  using Branched = nn::Sequential<nn::Input<6>, nn::Residual<nn::Dense<6, nn::Relu>>,
                                  nn::Concatenate<nn::ReLU, nn::Dense<3>>, nn::Dense<2>>;
  dist_test::check_steady_steps<Branched>({4, 2, 0, 4});
}
