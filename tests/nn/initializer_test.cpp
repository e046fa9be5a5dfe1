#include <dist/nn/initializer.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

constexpr std::size_t count = 200'000;
constexpr nn::Fans fans{30, 50};

template <class Initializer>
std::vector<double> draw(std::uint64_t seed = 11) {
  std::vector<double> values(count);
  Initializer::fill(dist::TensorView<double>{values.data(), dist::Shape{count}}, fans, dist::RandomStream{seed});
  return values;
}

struct Statistics {
  double mean = 0;
  double variance = 0;
  double largest = 0;
};
Statistics statistics(const std::vector<double>& values) {
  Statistics s;
  for (const double value : values) s.mean += value / count;
  for (const double value : values) {
    s.variance += (value - s.mean) * (value - s.mean) / count;
    s.largest = std::fmax(s.largest, std::abs(value));
  }
  return s;
}

/// Checks the mean within five standard errors of 0, and the variance within 2 % (its standard error is below 0.4 % for
/// both shapes).
void check(const Statistics& s, double variance, double bound) {
  CHECK(std::abs(s.mean) < 5 * std::sqrt(variance / count));
  CHECK(s.variance == doctest::Approx(variance).epsilon(0.02));
  CHECK(s.largest <= bound);
  CHECK(s.largest > 0.99 * bound);  // the whole range is used
}

}  // namespace

TEST_CASE("GlorotUniform has variance 2 / (in + out), within sqrt(6 / (in + out))") {
  check(statistics(draw<nn::GlorotUniform>()), 2.0 / 80, std::sqrt(6.0 / 80));
}
TEST_CASE("GlorotNormal has variance 2 / (in + out), truncated at two deviations") {
  check(statistics(draw<nn::GlorotNormal>()), 2.0 / 80, 2 * std::sqrt(2.0 / 80) / 0.87962566);
}
TEST_CASE("HeUniform has variance 2 / in, within sqrt(6 / in)") {
  check(statistics(draw<nn::HeUniform>()), 2.0 / 30, std::sqrt(6.0 / 30));
}
TEST_CASE("HeNormal has variance 2 / in, truncated at two deviations") {
  check(statistics(draw<nn::HeNormal>()), 2.0 / 30, 2 * std::sqrt(2.0 / 30) / 0.87962566);
}

TEST_CASE("equal seeds give equal numbers, different seeds different ones") {
  CHECK(draw<nn::HeNormal>(1) == draw<nn::HeNormal>(1));
  CHECK(draw<nn::GlorotUniform>(1) != draw<nn::GlorotUniform>(2));
}

TEST_CASE("an element's number does not depend on the number of elements") {
  std::vector<float> few(10);
  std::vector<float> many(1000);
  nn::HeNormal::fill(dist::TensorView<float>{few.data(), dist::Shape{10}}, fans, dist::RandomStream{5});
  nn::HeNormal::fill(dist::TensorView<float>{many.data(), dist::Shape{1000}}, fans, dist::RandomStream{5});
  CHECK(few == std::vector<float>(many.begin(), many.begin() + 10));
}

TEST_CASE("Zeros overwrites previous values") {
  std::vector<float> values(5, 7.0F);
  nn::Zeros::fill(dist::TensorView<float>{values.data(), dist::Shape{5}}, fans, dist::RandomStream{5});
  CHECK(values == std::vector<float>(5, 0.0F));
}
