#include <dist/train/model_steps.hpp>

#include <cstddef>
#include <tuple>

#include <doctest/doctest.h>
#include <dist/core/index_range.hpp>
#include <dist/nn/losses/mean_squared_error.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/optimizers/sgd.hpp>

#include "linear.hpp"

namespace nn = dist::nn;

namespace {

/// A network whose optimizer is told which gradients are ready.
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

TEST_CASE("an optimizer that applies gradients when they are ready is told so in the backward pass") {
  dist::Default strategy;
  Overlapped net{strategy};
  nn::detail::ModelSteps<dist::Default, Overlapped, nn::SGD, nn::MeanSquaredError> steps{strategy, net, nn::SGD{},
                                                                                         nn::MeanSquaredError{}};
  Points::Element batch;
  REQUIRE(Points{4, 4}.iterate(0).next(batch));
  strategy.run([&](auto& replica) { steps.train(replica, std::tuple{batch.x, batch.y}); });
  CHECK(steps.optimizer().ready_before_the_end == 3);
}

// What a Model makes of it: model_test.cpp, model_fit_test.cpp.
TEST_CASE("a step of training updates and measures, one of a test measures alone") {
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
