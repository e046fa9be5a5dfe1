#include <dist/comm/nccl/reduction.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace {
struct Own : dist::Sum {};
using dist::nccl::reduces;
}  // namespace

static_assert(reduces<float, dist::Sum> && reduces<double, dist::Mean> && reduces<dist::Float16, dist::Max> &&
              reduces<dist::BFloat16, dist::Prod> && reduces<std::int8_t, dist::Min> &&
              reduces<std::uint64_t, dist::Sum>);
static_assert(!reduces<bool, dist::Max> && !reduces<std::int16_t, dist::Sum> && !reduces<std::uint16_t, dist::Sum>);
static_assert(!reduces<std::int32_t, dist::BitAnd> && !reduces<float, Own>);

TEST_CASE_TEMPLATE("keys have the order of the numbers with -0 below +0 and NaN as the extremum", T, float, double,
                   dist::Float16, dist::BFloat16) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ascending{-infinity, -448.0F,  -1.5F, -1.0F, -0x1p-14F, -0.0F,
                                     0.0F,      0x1p-14F, 1.0F,  1.5F,  448.0F,    infinity};
  const auto check = [&]<class Op>(Op) {
    using Key = dist::nccl::Key<T, Op>;
    for (std::size_t i = 0; i < ascending.size(); ++i) {
      const auto number = static_cast<T>(ascending[i]);
      if (i > 0) CHECK(Key::of(static_cast<T>(ascending[i - 1])) < Key::of(number));
      const auto back = static_cast<float>(Key::number(Key::of(number)));
      CHECK(back == ascending[i]);
      CHECK(std::signbit(back) == std::signbit(ascending[i]));
    }
    const auto nan = static_cast<T>(-std::numeric_limits<float>::quiet_NaN());
    constexpr bool is_max = std::is_same_v<Op, dist::Max>;
    CHECK((is_max ? Key::of(nan) > Key::of(static_cast<T>(infinity))
                  : Key::of(nan) < Key::of(static_cast<T>(-infinity))));
    CHECK(std::isnan(static_cast<float>(Key::number(Key::of(nan)))));
  };
  check(dist::max);
  check(dist::min);
}
