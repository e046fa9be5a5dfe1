#include <dist/nn/metrics/row_metric.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include <dist/core/future.hpp>
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

TEST_CASE("measure_rows adds up rows with their weights") {
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

TEST_CASE("without_name removes the name, which is in the host's memory") {
  CHECK(nn::detail::without_name(Sum{}).name.data() == nullptr);
}

namespace {

struct Tally {
  double total = 0;
  int count = 0;
};

/// A future that is done once `is_there`, and counts its waits.
struct Later {
  double number;
  const bool* is_there;
  int* waits;

  void wait() const { ++*waits; }
  [[nodiscard]] bool is_done() const { return *is_there; }
};
auto tally_of(const Later& later) {
  return nn::DeferredTally{later, [](const Later& computed) {
                             computed.wait();
                             if (computed.number < 0) throw std::runtime_error("no number");
                             return Tally{computed.number, 2};
                           }};
}

}  // namespace

TEST_CASE("completed tallies are taken in order") {
  nn::detail::DeferredTallies<Tally> tallies;
  bool first = false, second = true, third = false;
  int waits = 0;
  for (const bool* is_there : {&first, &second, &third}) tallies.add(tally_of({1, is_there, &waits}));
  CHECK(tallies.take(false).count == 0);  // the second tally has to wait for the first
  CHECK(waits == 0);
  first = true;
  const Tally two = tallies.take(false);
  CHECK(two.total == 2);
  CHECK(two.count == 4);
  CHECK(tallies.take(false).count == 0);
  CHECK(tallies.take(true).count == 2);
  CHECK(waits == 3);
  CHECK(tallies.take(true).count == 0);
}

TEST_CASE("a tally that throws is reported once, and the others are kept") {
  nn::detail::DeferredTallies<Tally> tallies;
  const bool is_there = true;
  int waits = 0;
  for (const double number : {1.0, -1.0, 4.0}) tallies.add(tally_of({number, &is_there, &waits}));
  CHECK_THROWS_AS(static_cast<void>(tallies.take(true)), std::runtime_error);
  const Tally others = tallies.take(true);
  CHECK(others.total == 5);
  CHECK(others.count == 4);
  CHECK(tallies.take(true).count == 0);
}

TEST_CASE("take does not wait for cleared tallies") {
  nn::detail::DeferredTallies<Tally> tallies;
  const bool is_there = false;
  int waits = 0;
  tallies.add(tally_of({1, &is_there, &waits}));
  tallies.clear();
  CHECK(tallies.take(true).count == 0);
  CHECK(waits == 0);
  for (const double number : {1.0, -1.0}) tallies.add(tally_of({number, &is_there, &waits}));
  CHECK_THROWS_AS(static_cast<void>(tallies.take(true)), std::runtime_error);
  tallies.clear();  // also clears the sum
  CHECK(tallies.take(true).count == 0);
}

TEST_CASE("AllOf is done when both futures are") {
  bool first = true, second = false;
  int waits = 0;
  const nn::detail::AllOf both{Later{1, &first, &waits}, Later{2, &second, &waits}};
  static_assert(dist::Future<nn::detail::AllOf<Later, Later>>);
  CHECK(!both.is_done());
  second = true;
  CHECK(both.is_done());
  both.wait();
  CHECK(waits == 2);
}
