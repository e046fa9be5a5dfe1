#include <dist/train/model_steps.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/mirrored.hpp>

#include <support/saved.hpp>

#include "linear.hpp"

namespace nn = dist::nn;

namespace {

/// A network whose optimizer is notified of ready gradients.
struct Overlapped : Linear<dist::Default> {
  using Linear<dist::Default>::Linear;
  void backward(const auto& replica, const auto& loss, const auto& when_ready) {
    Linear<dist::Default>::backward(replica, loss);
    when_ready(dist::IndexRange{0, 3});
  }
};

}  // namespace

template <>
class nn::Optimizer<dist::Default, Overlapped, nn::SGD> {
 public:
  static constexpr bool applies_when_ready = true;
  Optimizer(dist::Default&, Overlapped&, const nn::SGD&) {}
  auto when_ready(const auto&) {
    return [this](dist::IndexRange elements) { ready += elements.size(); };
  }
  void apply_gradients(const auto&) { ready_before_the_end = ready; }

  std::size_t ready = 0;
  std::size_t ready_before_the_end = 0;
};

TEST_CASE("an optimizer that applies ready gradients is notified in the backward pass") {
  dist::Default strategy;
  Overlapped net{strategy};
  nn::detail::ModelSteps<dist::Default, Overlapped, nn::SGD, nn::MeanSquaredError> steps{strategy, net, nn::SGD{},
                                                                                         nn::MeanSquaredError{}};
  Points::Element batch;
  REQUIRE(Points{4, 4}.iterate(0).next(batch));
  strategy.run([&](auto& replica) { steps.train(replica, std::tuple{batch.x, batch.y}); });
  CHECK(steps.optimizer().ready_before_the_end == 3);
}

// For Model itself, see model_test.cpp and model_fit_test.cpp.
TEST_CASE("a training step updates and measures, a test step only measures") {
  constexpr float rate = 0.125F;
  dist::Default strategy;
  Linear<dist::Default> net{strategy};
  nn::detail::ModelSteps<dist::Default, Linear<dist::Default>, nn::SGD, nn::MeanSquaredError,
                         nn::MeanOf<nn::MeanSquaredError>>
      steps{strategy, net, nn::SGD{.learning_rate = rate}, nn::MeanSquaredError{}, nn::MeanOf{nn::MeanSquaredError{}}};
  const Points points{4, 4};
  Points::Element batch;
  REQUIRE(points.iterate(0).next(batch));
  PlainLinear plain;
  const double before = plain.mean_squared_error(points);

  strategy.run([&](auto& replica) { steps.test(replica, batch); });
  CHECK(steps.tested().read()["loss"] == doctest::Approx(before));
  CHECK(steps.trained().read()["loss"] == 0);
  CHECK(steps.optimizer().iterations(strategy.scope()) == 0);
  steps.tested().reset();
  CHECK(steps.tested().read()["loss"] == 0);

  strategy.run([&](auto& replica) { steps.train(replica, std::tuple{batch.x, batch.y}); });
  CHECK(steps.trained().current()()["mean_squared_error"] == doctest::Approx(plain.train(points, double{rate})));
  CHECK(steps.optimizer().iterations(strategy.scope()) == 1);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(net.parameters().read(strategy.scope())[i] == doctest::Approx(plain.weights[i]));
}

namespace {

using Halves = nn::MixedPrecision<nn::Reference, dist::Float16>;

/// The model y = w x + b with SGD, starting at 0, with one row per replica, x = 1.
template <class O = nn::SGD>
struct HalvesModel {
  using Strategy = dist::Mirrored<dist::ThreadAllReduce>;
  using Net = nn::Network<nn::Sequential<nn::Input<1>, nn::Dense<1, nn::Linear, nn::Zeros>>, Halves>;

  explicit HalvesModel(std::size_t replicas, O optimizer = {.learning_rate = 0.25F})
      : strategy(replicas), net(strategy), steps(strategy, net, std::move(optimizer), nn::MeanSquaredError{}) {}
  /// Trains one step with a target for each replica, and returns the kernel.
  float train(const std::vector<float>& targets) {
    strategy.run([&](auto& replica) {
      const dist::Tensor<float> x{{1, 1}, {1}}, y{{1, 1}, {targets[replica.replica_id().index()]}};
      steps.train(replica, std::tuple{x.view(), y.view()});
    });
    return net.parameter(strategy.scope(), "dense/kernel")[0];
  }

  Strategy strategy;
  Net net;
  nn::detail::ModelSteps<Strategy, Net, O, nn::MeanSquaredError> steps;
};

/// Returns the kernel after each of `steps` steps with this target on each replica.
std::vector<float> kernels(std::size_t replicas, float target, std::size_t steps) {
  HalvesModel model{replicas};
  std::vector<float> kernels;
  for (std::size_t step = 0; step < steps; ++step) kernels.push_back(model.train(std::vector<float>(replicas, target)));
  return kernels;
}

}  // namespace

// The gradient of the kernel is 2 (w - target). Float16 has no values below 2^-25 or above 65504.
TEST_CASE("the loss of a Float16 network is scaled to keep small gradients, and overflows skip a step") {
  const float tiny = 0x1p-30F;
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(replicas);
    CHECK(kernels(replicas, tiny, 1) == std::vector<float>{tiny / 2});
    // A gradient of 4 / replicas overflows at a scale of 32768 and, for one replica, of 16384. Then the kernel and the
    // bias become 1, and the loss 0.
    CHECK(kernels(replicas, 2, 4) == (replicas == 1 ? std::vector<float>{0, 0, 1, 1} : std::vector<float>{0, 1, 1, 1}));
  }
}

TEST_CASE("an overflow on one replica skips the step of all, and checkpoints have the scale") {
  HalvesModel model{2};
  // The gradient of replica 1 is 4. At a scale of 32768 and 16384 it overflows.
  const std::vector<float> kernels{0, 0, 1};
  const std::vector<double> scales{16384, 8192, 8192};
  for (std::size_t step = 0; step < 3; ++step) {
    CHECK(model.train({0, 4}) == kernels[step]);
    const support::Saved saved{model.strategy, model.steps};
    CHECK(saved.get<double>("loss_scale/value")[0] == scales[step]);
    CHECK(saved.get<std::int64_t>("loss_scale/good_steps")[0] == (step == 2 ? 1 : 0));
  }
  const support::Saved saved{model.strategy, model.steps};
  HalvesModel restored{1};
  saved.restore(restored.strategy, restored.steps);
  CHECK(restored.train({8}) == 1);  // the gradient of 12 overflows at 8192
  CHECK(support::Saved{restored.strategy, restored.steps}.get<double>("loss_scale/value")[0] == 4096);
}

TEST_CASE("a Model with nn::NoLossScale does not scale the loss") {
  HalvesModel model{2, nn::With{nn::SGD{.learning_rate = 0.25F}, nn::NoLossScale{}}};
  CHECK(model.train({0x1p-30F, 0x1p-30F}) == 0);  // Float16 has no values below 2^-25
  CHECK(model.train({2, 2}) == 1);
  for (const std::string& key : support::Saved{model.strategy, model.steps}.keys())
    CHECK(!key.starts_with("loss_scale"));
}

using dist::nn::detail::parts_of_batch;

TEST_CASE("parts_of_batch supports members x and y, tuples, and features alone") {
  struct Batch {
    int x;
    double y;
    int id;
  };
  const Batch batch{3, 0.5, 7};
  CHECK(parts_of_batch<2>(batch) == std::tuple{3, 0.5});
  CHECK(&std::get<0>(parts_of_batch<2>(batch)) == &batch.x);  // without a copy
  const std::pair pair{4, 1.5};
  CHECK(parts_of_batch<2>(pair) == std::tuple{4, 1.5});
  CHECK(&std::get<1>(parts_of_batch<2>(pair)) == &pair.second);
  CHECK(parts_of_batch<2>(std::tuple{5, 2.5, 'w'}) == std::tuple{5, 2.5, 'w'});
  CHECK(parts_of_batch<2>(std::array{6, 7}) == std::tuple{6, 7});
  CHECK(parts_of_batch<1>(std::tuple{8}) == std::tuple{8});
  const int features = 9;
  CHECK(parts_of_batch<1>(features) == std::tuple{9});
}
