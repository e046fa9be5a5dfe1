#include <dist/train/model_metric.hpp>

#include <cstdint>
#include <string_view>

#include <doctest/doctest.h>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

namespace {

/// A user's own, which takes no weights.
struct Rows {
  using Tally = nn::Tally<double, double>;
  std::string_view name = "rows";
  Tally operator()(const auto& outputs, const auto&) const { return {static_cast<double>(outputs.rows()), 1}; }
};

/// What it says of 3 rows, of which the last two are right, with weights 4, 1, 3.
template <class M>
double measured(M measure, bool with_weights) {
  dist::Default strategy;
  nn::detail::ModelMetric<dist::Default, M> metric{strategy, measure};
  dist::Tensor<float> outputs{dist::Shape{3, 2}};
  outputs[0] = outputs[3] = outputs[5] = 1;
  dist::Tensor<std::int32_t> labels{dist::Shape{3}};
  labels[0] = labels[1] = labels[2] = 1;
  dist::Tensor<float> weights{dist::Shape{3}};
  weights[0] = 4, weights[1] = 1, weights[2] = 3;
  strategy.run([&](auto& replica) {
    if (with_weights)
      metric.update(replica, outputs, labels, weights);
    else
      metric.update(replica, outputs, labels, nn::Unweighted{});
  });
  const double result = metric.result(strategy.scope());
  CHECK(metric.result_here(strategy.scope()) == result);
  metric.reset(strategy.scope());
  CHECK(metric.result(strategy.scope()) == 0);
  return result;
}

}  // namespace

TEST_CASE("a metric looks at weights where it is Weighted") {
  CHECK(measured(nn::SparseCategoricalAccuracy{}, true) == doctest::Approx(2.0 / 3));
  CHECK(measured(nn::Weighted{nn::SparseCategoricalAccuracy{}}, true) == 0.5);
  CHECK(measured(nn::Weighted{nn::SparseCategoricalAccuracy{}}, false) == doctest::Approx(2.0 / 3));
  CHECK(measured(Rows{}, true) == 3);
}

TEST_CASE("it has the name of the metric until it gets another one") {
  dist::Default strategy;
  nn::detail::ModelMetric<dist::Default, nn::Weighted<nn::SparseCategoricalAccuracy>> metric{
      strategy, nn::Weighted{nn::SparseCategoricalAccuracy{.name = "top"}}};
  CHECK(metric.name() == "top");
  metric.rename("weighted_top");
  CHECK(metric.name() == "weighted_top");
}
