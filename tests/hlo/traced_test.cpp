#include <dist/hlo/traced.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>

#include <dist/hlo/gradients.hpp>
#include <dist/hlo/operations.hpp>
#include <hlo/run.hpp>

using dist::Tensor;
using dist::hlo::Traced;

static_assert(Traced<float, 2, 3>::elements == 6 && Traced<float>::elements == 1);
static_assert(Traced<int, 2, 3>::shape() == dist::Shape{2, 3});
static_assert(!std::is_convertible_v<Traced<float>, float> && !std::is_convertible_v<Traced<bool>, bool>);
// Host numbers convert to traced ones, and a number to an array; no other element type or shape converts implicitly.
static_assert(std::is_convertible_v<float, Traced<float, 2>> && std::is_convertible_v<Traced<float>, Traced<float, 2>>);
static_assert(!std::is_convertible_v<Traced<double>, Traced<float>> &&
              !std::is_convertible_v<Traced<float, 3>, Traced<float, 2>>);

namespace {

void check_near(const Tensor<float>& computed, const Tensor<float>& x, double (*expected)(double)) {
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(static_cast<double>(computed[i]) == doctest::Approx(expected(static_cast<double>(x[i]))).epsilon(1e-6));
}

/// Checks the constants of type T in a program: its extrema, and one number.
template <class T>
void check_constants() {
  CAPTURE(dist::dtype_name<T>);
  const auto [least, greatest, number] = testing::run<>(1, [] {
    return std::tuple{Traced<T>{std::numeric_limits<T>::lowest()}, Traced<T>{std::numeric_limits<T>::max()},
                      Traced<T>{static_cast<T>(3)}};
  });
  CHECK(least[0] == std::numeric_limits<T>::lowest());
  CHECK(greatest[0] == std::numeric_limits<T>::max());
  CHECK(number[0] == static_cast<T>(3));
}

/// Checks that each element of `rounded` is x converted to Half.
template <class Half>
void check_rounded(const Tensor<float>& rounded, const Tensor<float>& x) {
  CAPTURE(dist::dtype_name<Half>);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float expected = static_cast<float>(Half{x[i]});
    const bool is_same = std::isnan(expected)
                             ? std::isnan(rounded[i])
                             : std::bit_cast<std::uint32_t>(rounded[i]) == std::bit_cast<std::uint32_t>(expected);
    if (!is_same && wrong++ == 0) MESSAGE(x[i], " became ", rounded[i], ", not ", expected);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("operators and functions of traced arrays work element by element") {
  const Tensor<float> xs{{3}, {0.25F, 1.5F, 2.75F}};
  const Tensor<float> ys{{3}, {2, -4, 0.5F}};
  const auto results = testing::run<Traced<float, 3>, Traced<float, 3>>(
      1,
      [](auto x, auto y) {
        auto changed = x;
        changed += y;
        changed -= 1;
        changed *= x;
        changed /= 2;
        return std::tuple{x + y,     x - y,       x * y,     x / y,    -x,     1 - x,
                          pow(x, y), max(x, y),   min(x, y), abs(y),   exp(x), expm1(x),
                          log(x),    log1p(x),    sqrt(x),   rsqrt(x), sin(x), cos(x),
                          tanh(x),   logistic(x), floor(y),  changed,  x % y,  select(x > y, x, y + 10.0F),
                          erf(x)};
      },
      xs, ys);
  CHECK(std::get<0>(results) == Tensor<float>{{3}, {2.25F, -2.5F, 3.25F}});
  CHECK(std::get<1>(results) == Tensor<float>{{3}, {-1.75F, 5.5F, 2.25F}});
  CHECK(std::get<2>(results) == Tensor<float>{{3}, {0.5F, -6, 1.375F}});
  CHECK(std::get<3>(results) == Tensor<float>{{3}, {0.125F, -0.375F, 5.5F}});
  CHECK(std::get<4>(results) == Tensor<float>{{3}, {-0.25F, -1.5F, -2.75F}});
  CHECK(std::get<5>(results) == Tensor<float>{{3}, {0.75F, -0.5F, -1.75F}});
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(std::get<6>(results)[i] == doctest::Approx(std::pow(xs[i], ys[i])).epsilon(1e-6));
  CHECK(std::get<7>(results) == Tensor<float>{{3}, {2, 1.5F, 2.75F}});
  CHECK(std::get<8>(results) == Tensor<float>{{3}, {0.25F, -4, 0.5F}});
  CHECK(std::get<9>(results) == Tensor<float>{{3}, {2, 4, 0.5F}});
  check_near(std::get<10>(results), xs, std::exp);
  check_near(std::get<11>(results), xs, std::expm1);
  check_near(std::get<12>(results), xs, std::log);
  check_near(std::get<13>(results), xs, std::log1p);
  check_near(std::get<14>(results), xs, std::sqrt);
  check_near(std::get<15>(results), xs, [](double a) { return 1 / std::sqrt(a); });
  check_near(std::get<16>(results), xs, std::sin);
  check_near(std::get<17>(results), xs, std::cos);
  check_near(std::get<18>(results), xs, std::tanh);
  check_near(std::get<19>(results), xs, [](double a) { return 1 / (1 + std::exp(-a)); });
  CHECK(std::get<20>(results) == Tensor<float>{{3}, {2, -4, 0}});
  CHECK(std::get<21>(results) == Tensor<float>{{3}, {0.15625F, -2.625F, 3.09375F}});
  CHECK(std::get<22>(results) == Tensor<float>{{3}, {0.25F, 1.5F, 0.25F}});
  CHECK(std::get<23>(results) == Tensor<float>{{3}, {12, 1.5F, 2.75F}});
  check_near(std::get<24>(results), xs, std::erf);
}

TEST_CASE("bit operations, comparisons and conversions work on all element types") {
  const auto results = testing::run<Traced<std::uint32_t, 2>, Traced<std::int32_t, 2>>(
      1,
      [](auto u, auto i) {
        const auto wide = u.template as<std::uint64_t>() * 0xD2511F53U;
        return std::tuple{u & 12U,
                          u | 1U,
                          u ^ 0xFFU,
                          u << 4U,
                          u >> 1U,
                          i >> 1,
                          wide,
                          (i.template as<float>() / 2),
                          i == -8,
                          i != -8,
                          i<5, i <= 5, i> 5,
                          i >= 5,
                          !(i < 5),
                          i % 3,
                          (u.template as<float>() / 4.0F).template as<std::int32_t>()};
      },
      Tensor<std::uint32_t>{{2}, {0x80000009U, 6}}, Tensor<std::int32_t>{{2}, {-8, 5}});
  using Bits = Tensor<std::uint32_t>;
  CHECK(std::get<0>(results) == Bits{{2}, {8, 4}});
  CHECK(std::get<1>(results) == Bits{{2}, {0x80000009U, 7}});
  CHECK(std::get<2>(results) == Bits{{2}, {0x800000F6U, 0xF9}});
  CHECK(std::get<3>(results) == Bits{{2}, {0x90, 0x60}});
  CHECK(std::get<4>(results) == Bits{{2}, {0x40000004U, 3}});
  CHECK(std::get<5>(results) == Tensor<std::int32_t>{{2}, {-4, 2}});
  CHECK(std::get<6>(results) == Tensor<std::uint64_t>{{2}, {0x80000009ULL * 0xD2511F53ULL, 6 * 0xD2511F53ULL}});
  CHECK(std::get<7>(results) == Tensor<float>{{2}, {-4, 2.5F}});
  CHECK(std::get<8>(results) == Tensor<bool>{{2}, {true, false}});
  CHECK(std::get<9>(results) == Tensor<bool>{{2}, {false, true}});
  CHECK(std::get<10>(results) == Tensor<bool>{{2}, {true, false}});
  CHECK(std::get<11>(results) == Tensor<bool>{{2}, {true, true}});
  CHECK(std::get<12>(results) == Tensor<bool>{{2}, {false, false}});
  CHECK(std::get<13>(results) == Tensor<bool>{{2}, {false, true}});
  CHECK(std::get<14>(results) == Tensor<bool>{{2}, {false, true}});
  CHECK(std::get<15>(results) == Tensor<std::int32_t>{{2}, {-2, 2}});
  CHECK(std::get<16>(results)[1] == 1);
}

TEST_CASE("rounded returns the nearest values of a 16-bit type, and passes gradients") {
  // All signs and exponents; the last 12 bits make the values less than, exactly, or more than halfway between two
  // results.
  constexpr std::size_t count = std::size_t{1} << 20;
  Tensor<float> x{{count}};
  for (std::uint32_t i = 0; i < count; ++i)
    x[i] = std::bit_cast<float>(i << 12 | (i % 3 == 0 ? 0U : i % 3 == 1 ? 1U : 0xfffU));
  namespace hlo = dist::hlo;
  using Floats = Traced<float, count>;
  const auto [bfloat16, float16, of_double, slopes] = testing::run<Floats>(
      1,
      [](Floats numbers) {
        const auto wide = hlo::rounded<dist::Float16>(numbers.as<double>());
        const Floats y = hlo::rounded<dist::Float16>(hlo::rounded<dist::BFloat16>(numbers)) * 3;
        const auto sum = hlo::reduce(dist::sum, y);
        return std::tuple{hlo::rounded<dist::BFloat16>(numbers), hlo::rounded<dist::Float16>(numbers), wide.as<float>(),
                          std::get<0>(hlo::gradients(sum, std::tuple{numbers}))};
      },
      x);
  check_rounded<dist::BFloat16>(bfloat16, x);
  check_rounded<dist::Float16>(float16, x);
  check_rounded<dist::Float16>(of_double, x);
  CHECK(std::all_of(slopes.elements().begin(), slopes.elements().end(), [](float slope) { return slope == 3; }));
}

TEST_CASE("constants are transferred exactly") {
  check_constants<std::int8_t>();
  check_constants<std::int64_t>();
  check_constants<std::uint64_t>();
  check_constants<float>();
  check_constants<double>();
  const auto [infinity, nan, third, half, yes, no] = testing::run<>(1, [] {
    return std::tuple{Traced<float>{-std::numeric_limits<float>::infinity()},
                      Traced<double>{std::numeric_limits<double>::quiet_NaN()},
                      Traced<double>{1.0 / 3},
                      Traced<dist::BFloat16, 2>{dist::BFloat16{0.15625F}},
                      Traced<bool>{true},
                      Traced<bool>{false}};
  });
  CHECK(infinity[0] == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(nan[0]));
  CHECK(third[0] == 1.0 / 3);
  CHECK(half[1] == dist::BFloat16{0.15625F});
  CHECK(yes[0]);
  CHECK_FALSE(no[0]);
}
