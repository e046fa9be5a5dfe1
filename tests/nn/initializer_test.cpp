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

TEST_CASE("Orthogonal is Q of the decomposition Q R of normal numbers, as in Keras, for tall and wide kernels") {
  const auto check = [](const dist::Shape& shape, std::size_t rows, std::size_t columns) {
    std::vector<double> kernel(rows * columns);
    nn::Orthogonal::fill(dist::TensorView<double>{kernel.data(), shape}, fans, dist::RandomStream{5});
    const std::size_t vectors = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
    const auto element = [&](std::size_t which, std::size_t i) {
      return rows < columns ? kernel[which * columns + i] : kernel[i * columns + which];
    };
    for (std::size_t one = 0; one < vectors; ++one)
      for (std::size_t two = 0; two < vectors; ++two) {
        CAPTURE(one);
        CAPTURE(two);
        double product = 0, of_r = 0;  // of Q and Q, and of Q and the normal numbers
        for (std::size_t i = 0; i < length; ++i) {
          product += element(one, i) * element(two, i);
          of_r += element(one, i) * dist::RandomStream{5}.normal<double>(i * vectors + two);
        }
        CHECK(product == doctest::Approx(one == two ? 1 : 0).scale(1).epsilon(1e-14));
        if (one == two) CHECK(of_r > 0);
        if (one > two) CHECK(of_r == doctest::Approx(0).scale(1).epsilon(1e-13));
      }
  };
  check({7, 4}, 7, 4);
  check({4, 7}, 4, 7);
  check({3, 3, 5, 20}, 45, 20);
  check({1, 2, 3, 40}, 6, 40);
  check({6}, 1, 6);
}

TEST_CASE("Orthogonal fills float kernels, and none without elements") {
  std::vector<float> one(40 * 40), two(40 * 40);
  nn::Orthogonal::fill(dist::TensorView<float>{one.data(), dist::Shape{40, 40}}, fans, dist::RandomStream{1});
  nn::Orthogonal::fill(dist::TensorView<float>{two.data(), dist::Shape{40, 40}}, fans, dist::RandomStream{2});
  CHECK(one != two);
  nn::Orthogonal::fill(dist::TensorView<float>{nullptr, dist::Shape{0, 3}}, fans, dist::RandomStream{1});
}

TEST_CASE("Zeros overwrites previous values") {
  std::vector<float> values(5, 7.0F);
  nn::Zeros::fill(dist::TensorView<float>{values.data(), dist::Shape{5}}, fans, dist::RandomStream{5});
  CHECK(values == std::vector<float>(5, 0.0F));
}
