#include <dist/train/measurements.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;
using dist::InvalidArgument;
using nn::CurrentLogs;
using nn::Logs;

namespace {

/// A metric that counts its reads.
class Reads final : public nn::detail::AnyModelMetric {
 public:
  explicit Reads(std::string_view name, bool weighs = false) : AnyModelMetric(weighs, nn::Better::more) {
    rename(name);
  }

  void reset() override { reads_ = 0; }
  double result() const override { return ++reads_; }
  double result_here() const override { return -++reads_; }

 private:
  mutable double reads_ = 0;
};

struct Measured final : nn::detail::Measurements {
  explicit Measured(std::vector<nn::detail::AnyModelMetric*> metrics) { take(std::move(metrics)); }
};

/// A user's metric, which takes no weights.
struct Rows {
  using Tally = nn::Tally<double, double>;
  std::string_view name = "rows";
  Tally operator()(const auto& outputs, const auto&) const { return {static_cast<double>(outputs.rows()), 1}; }
};

/// Returns the result of a metric for 3 rows, the last two correct, with weights 4, 1, 3.
template <class M>
double measured(M measure, bool with_weights) {
  dist::Default strategy;
  nn::detail::ModelMetric<dist::Default, M> metric{{strategy, measure}};
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
  const double result = metric.result();
  CHECK(metric.result_here() == result);
  metric.reset();
  CHECK(metric.result() == 0);
  return result;
}

}  // namespace

TEST_CASE("the logs of a step are computed when a callback reads them") {
  Reads loss{"loss"};
  Measured measured{{&loss}};
  const CurrentLogs logs = measured.current();
  CHECK(logs()["loss"] == -1);
  CHECK(logs.of_all_processes()["loss"] == 2);
  measured.reset();
  CHECK(logs()["loss"] == -1);
}

TEST_CASE("each metric has a unique name") {
  Reads loss{"loss"}, accuracy{"accuracy"}, weighted{"accuracy", true}, other{"loss"};
  const Measured measured{{&loss, &weighted, &accuracy}};
  CHECK(measured.names() == "loss, accuracy, weighted_accuracy");
  CHECK(measured.better("loss") == nn::Better::less);
  CHECK(measured.better("weighted_accuracy") == nn::Better::more);
  CHECK(!measured.better("other"));
  CHECK_THROWS_WITH_AS((Measured{{&loss, &other}}), doctest::Contains("Two metrics of a model are named 'loss'"),
                       InvalidArgument);
}

TEST_CASE("only one fit or evaluation measures at a time") {
  Measured measured{{}};
  {
    const auto turn = measured.taken_by("fit");
    CHECK_THROWS_WITH_AS(static_cast<void>(measured.taken_by("evaluate")),
                         doctest::Contains("evaluate was called in a callback of a fit or an evaluation"),
                         InvalidArgument);
  }
  static_cast<void>(measured.taken_by("evaluate"));
}

TEST_CASE("only a Weighted metric uses weights") {
  CHECK(measured(nn::SparseCategoricalAccuracy{}, true) == doctest::Approx(2.0 / 3));
  CHECK(measured(nn::Weighted{nn::SparseCategoricalAccuracy{}}, true) == 0.5);
  CHECK(measured(nn::Weighted{nn::SparseCategoricalAccuracy{}}, false) == doctest::Approx(2.0 / 3));
  CHECK(measured(Rows{}, true) == 3);
}

TEST_CASE("a metric in a model has its own name until it is renamed") {
  dist::Default strategy;
  const nn::Weighted measure{nn::SparseCategoricalAccuracy{.name = "top"}};
  nn::detail::ModelMetric<dist::Default, nn::Weighted<nn::SparseCategoricalAccuracy>> metric{{strategy, measure}};
  CHECK(metric.name() == "top");
  metric.rename("weighted_top");
  CHECK(metric.name() == "weighted_top");
}
