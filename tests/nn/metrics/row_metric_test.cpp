#include <dist/nn/metrics/row_metric.hpp>

#include <cstdint>
#include <string_view>

#include <doctest/doctest.h>
#include <dist/device/cpu.hpp>
#include <dist/nn/metric.hpp>

namespace nn = dist::nn;

namespace {

/// The sum of a row's outputs.
struct Sum {
  using Tally = nn::Tally<double, double>;
  std::string_view name = "sum";
  template <class T, class Target>
  double of_row(nn::Row<const T> outputs, nn::Row<const Target>) const {
    double total = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) total += static_cast<double>(outputs[i]);
    return total;
  }
};
struct OfInt {
  int of_row(nn::Row<const float>, nn::Row<const std::int32_t>) const { return 0; }
};

}  // namespace

static_assert(nn::MeasuresRows<Sum> && nn::MetricFunction<Sum>);
static_assert(!nn::MeasuresRows<OfInt>);

TEST_CASE("rows are added up with their weights") {
  dist::Tensor<float> outputs{dist::Shape{3, 2}};
  for (std::size_t i = 0; i < 6; ++i) outputs[i] = static_cast<float>(i);
  const dist::Tensor<int> targets{dist::Shape{3, 2}};
  dist::Tensor<double> weights{dist::Shape{3}};
  weights[0] = 2, weights[1] = 0, weights[2] = 0.5;
  const auto plain = nn::detail::measure_rows(dist::Cpu::Queue{}, Sum{}, outputs, targets);
  CHECK(plain.total == 15);
  CHECK(plain.count == 3);
  const auto weighted = nn::detail::measure_rows(dist::Cpu::Queue{}, Sum{}, outputs, targets, weights);
  CHECK(weighted.total == 2 * 1 + 0.5 * 9);
  CHECK(weighted.count == 2.5);
  weights.resize(dist::Shape{2});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::detail::measure_rows(dist::Cpu::Queue{}, Sum{}, outputs, targets, weights)),
      "sum got sample weights that do not fit the outputs (outputs [3, 2], weights [2]). Give one weight per example, "
      "or "
      "none.",
      dist::ShapeMismatch);
}

TEST_CASE("a kernel takes a metric without its name, which lies in the host's memory") {
  CHECK(nn::detail::without_name(Sum{}).name.data() == nullptr);
}
