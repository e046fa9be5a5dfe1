#include <dist/core/random.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

using dist::philox;
using dist::RandomBlock;
using dist::RandomStream;

TEST_CASE("philox gives the known answers of Random123") {
  static_assert(philox({{0, 0, 0, 0}}, 0, 0) == RandomBlock{{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}});
  constexpr std::uint32_t ones = 0xffffffffU;
  CHECK(philox({{ones, ones, ones, ones}}, ones, ones) ==
        RandomBlock{{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}});
  CHECK(philox({{0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}}, 0xa4093822U, 0x299f31d0U) ==
        RandomBlock{{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}});
}

TEST_CASE("a stream is philox with index and stream as counter, and the seed as key") {
  // The words of the third known answer, low word first.
  const RandomStream random(0x299f31d0a4093822U, 0x0370734413198a2eU);
  CHECK(random.bits(0x85a308d3243f6a88U) == 0x94fdccebd16cfe09U);
  static_assert(RandomStream(0).bits(0) == 0xe169c58d6627e8d5U);
}

TEST_CASE("uniform numbers are the leading bits as a fraction") {
  constexpr RandomStream random(0);
  constexpr std::uint64_t bits = 0xe169c58d6627e8d5U;
  CHECK(random.uniform<float>(0) == static_cast<float>(bits >> 40) / 16777216.0F);
  CHECK(random.uniform<double>(0) == static_cast<double>(bits >> 11) / 9007199254740992.0);
}

TEST_CASE("a number depends only on seed, stream and index") {
  const RandomStream random(7, 1);
  const std::uint64_t late = random.bits(1'000'000);
  for (std::uint64_t index = 0; index < 100; ++index) static_cast<void>(random.bits(index));
  CHECK(random.bits(1'000'000) == late);
  CHECK(RandomStream(7, 1).bits(1'000'000) == late);
  CHECK(RandomStream(8, 1).bits(1'000'000) != late);
  CHECK(RandomStream(7, 2).bits(1'000'000) != late);
  CHECK(random.bits(1'000'001) != late);
  CHECK(RandomStream(7).bits(5) == RandomStream(7, 0).bits(5));
}

// Bounds are six standard deviations of the estimate: a fair generator exceeds one with a probability of 2e-9.
TEST_CASE_TEMPLATE("uniform numbers are in [0, 1) with mean 1/2 and variance 1/12", T, float, double) {
  constexpr std::size_t count = 100'000;
  const RandomStream random(42);
  double total = 0;
  double squares = 0;
  std::size_t outside = 0;
  std::array<std::size_t, 16> bins{};
  for (std::size_t i = 0; i < count; ++i) {
    const T value = random.uniform<T>(i);
    if (!(value >= T{0} && value < T{1})) {
      ++outside;
      continue;
    }
    total += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
    ++bins[static_cast<std::size_t>(value * T{16})];
  }
  const double n = count;
  CHECK(outside == 0);
  CHECK(std::abs(total / n - 0.5) < 6 * std::sqrt(1.0 / 12 / n));
  // The second moment is 1/3, and u^2 has variance 1/5 - 1/9 = 4/45.
  CHECK(std::abs(squares / n - 1.0 / 3) < 6 * std::sqrt(4.0 / 45 / n));
  for (const std::size_t bin : bins)
    CHECK(std::abs(static_cast<double>(bin) - n / 16) < 6 * std::sqrt(n / 16 * 15 / 16));
}

TEST_CASE_TEMPLATE("normal numbers have the moments 0, 1, 0 and 3", T, float, double) {
  constexpr std::size_t count = 100'000;
  const RandomStream random(43, 5);
  std::array<double, 5> moment{};
  std::size_t within_one = 0;
  std::size_t not_finite = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(random.normal<T>(i));
    if (!std::isfinite(value)) ++not_finite;
    double power = 1;
    for (double& m : moment) {
      m += power / static_cast<double>(count);
      power *= value;
    }
    if (std::abs(value) < 1) ++within_one;
  }
  const double n = count;
  CHECK(not_finite == 0);
  // Variances of x, x^2, x^3, x^4 for a standard normal: 1, 3 - 1, 15, 105 - 9.
  CHECK(std::abs(moment[1]) < 6 * std::sqrt(1 / n));
  CHECK(std::abs(moment[2] - 1) < 6 * std::sqrt(2 / n));
  CHECK(std::abs(moment[3]) < 6 * std::sqrt(15 / n));
  CHECK(std::abs(moment[4] - 3) < 6 * std::sqrt(96 / n));
  const double inside = std::erf(1 / std::sqrt(2.0));
  CHECK(std::abs(static_cast<double>(within_one) - n * inside) < 6 * std::sqrt(n * inside * (1 - inside)));
}

TEST_CASE("normal numbers are the Box-Muller transform of the block's two halves") {
  const double pi = std::acos(-1.0);
  const double u = static_cast<double>(0xe169c58d6627e8d5U >> 11) / 9007199254740992.0;
  const double v = static_cast<double>(0x9b00dbd8bc57ac4cU >> 11) / 9007199254740992.0;
  const double expected = std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * pi * v);
  CHECK(RandomStream(0).normal<double>(0) == doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE("numbers of adjacent indices and streams are uncorrelated") {
  constexpr std::size_t count = 50'000;
  const RandomStream random(1, 0);
  const RandomStream other(1, 1);
  double with_next = 0;
  double with_other = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double here = random.uniform<double>(i) - 0.5;
    with_next += here * (random.uniform<double>(i + 1) - 0.5);
    with_other += here * (other.uniform<double>(i) - 0.5);
  }
  const double bound = 6 * std::sqrt(static_cast<double>(count)) / 12;  // the product of two has variance 1/144
  CHECK(std::abs(with_next) < bound);
  CHECK(std::abs(with_other) < bound);
}

TEST_CASE("below returns each integer under the bound equally often, and no others") {
  constexpr std::size_t count = 70'000;
  const RandomStream random(9);
  std::array<std::size_t, 7> hits{};
  for (std::size_t i = 0; i < count; ++i) ++hits.at(random.below(7, i));
  const double expected = static_cast<double>(count) / 7;
  for (const std::size_t hit : hits)
    CHECK(std::abs(static_cast<double>(hit) - expected) < 6 * std::sqrt(expected * 6 / 7));
}

TEST_CASE("below is correct for extreme bounds") {
  static_assert(RandomStream(3).below(1, 17) == 0);
  static_assert(RandomStream(0).below(std::uint64_t{1} << 32, 0) == 0xe169c58dU);  // the high half of the bits
  const std::uint64_t bound = ~std::uint64_t{0};
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(RandomStream(3).below(bound, i) < bound);
}
