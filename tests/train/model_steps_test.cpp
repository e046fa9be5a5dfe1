#include <dist/train/model_steps.hpp>

#include <cstddef>
#include <tuple>

#include <doctest/doctest.h>
#include <dist/nn/losses/mean_squared_error.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/optimizers/sgd.hpp>

#include "linear.hpp"

// What a Model makes of it: model_test.cpp, model_fit_test.cpp.
TEST_CASE("a step of training updates and measures, one of a test measures alone") {
  namespace nn = dist::nn;
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
  CHECK(steps.read_logs()["loss"] == doctest::Approx(before));
  CHECK(steps.optimizer().iterations(strategy.scope()) == 0);
  steps.reset();
  CHECK(steps.read_logs()["loss"] == 0);

  strategy.run([&](auto& replica) { steps.train(replica, std::tuple{batch.x, batch.y}); });
  CHECK(steps.current_logs()()["mean_squared_error"] == doctest::Approx(plain.train(points, double{rate}, 1)));
  CHECK(steps.optimizer().iterations(strategy.scope()) == 1);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(net.parameters().read(strategy.scope())[i] == doctest::Approx(plain.weights[i]));
}
