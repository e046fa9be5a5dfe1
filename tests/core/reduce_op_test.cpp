#include <dist/core/reduce_op.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/largest_magnitude.hpp>

using dist::ReduceOp;
using support::LargestMagnitude;

namespace {

/// log(exp(a) + exp(b)), for numbers whose exponentials overflow.
struct LogSumExp {
  static constexpr std::string_view name = "log_sum_exp";
  template <std::floating_point T>
  static constexpr T identity = -std::numeric_limits<T>::infinity();
  template <std::floating_point T>
  T operator()(T a, T b) const {
    const T large = std::max(a, b);
    return std::isinf(large) ? large : large + std::log1p(std::exp(std::min(a, b) - large));
  }
  template <std::floating_point T>
  static T finish(T combined, std::size_t) {
    return combined;
  }
};

}  // namespace

#define DIST_TEST_INTEGERS \
  std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t

#define DIST_TEST_FLOATS dist::Float16, dist::BFloat16, float, double

TEST_CASE_TEMPLATE("operations combine numbers of every type (spec H01)", T, DIST_TEST_FLOATS, DIST_TEST_INTEGERS) {
  const T two{2};
  const T five{5};
  CHECK(dist::sum(two, five) == T{7});
  CHECK(dist::prod(two, five) == T{10});
  CHECK(dist::min(two, five) == two);
  CHECK(dist::min(five, two) == two);
  CHECK(dist::max(two, five) == five);
  CHECK(dist::max(five, two) == five);
  static_assert(std::is_same_v<decltype(dist::sum(two, five)), T>);
  static_assert(std::is_same_v<decltype(dist::prod(two, five)), T>);
}

TEST_CASE_TEMPLATE("an identity changes no value, not even the extremes", T, DIST_TEST_FLOATS, DIST_TEST_INTEGERS) {
  using Limits = std::numeric_limits<T>;
  for (const T value : {Limits::lowest(), Limits::max(), T{0}, T{1}, T{100}}) {
    CHECK(dist::sum(dist::Sum::identity<T>, value) == value);
    CHECK(dist::prod(dist::Prod::identity<T>, value) == value);
    CHECK(dist::min(dist::Min::identity<T>, value) == value);
    CHECK(dist::max(dist::Max::identity<T>, value) == value);
    CHECK(dist::min(value, dist::Min::identity<T>) == value);
    CHECK(dist::max(value, dist::Max::identity<T>) == value);
  }
}

TEST_CASE_TEMPLATE("identities keep infinities", T, DIST_TEST_FLOATS) {
  const T infinity = std::numeric_limits<T>::infinity();
  CHECK(dist::min(dist::Min::identity<T>, infinity) == infinity);
  CHECK(dist::max(dist::Max::identity<T>, -infinity) == -infinity);
  CHECK(dist::mean(dist::Mean::identity<T>, infinity) == infinity);
}

TEST_CASE_TEMPLATE("min and max are NaN if any value is, independent of the order", T, DIST_TEST_FLOATS) {
  using Limits = std::numeric_limits<T>;
  const auto same_bits = [](T a, T b) { return std::memcmp(&a, &b, sizeof(T)) == 0; };
  const T nan = Limits::quiet_NaN();
  const T values[] = {T(-0.0F),
                      T(0.0F),
                      T{1},
                      T{-1},
                      Limits::max(),
                      Limits::lowest(),
                      nan,
                      -Limits::infinity(),
                      Limits::infinity(),
                      Limits::denorm_min(),
                      -nan};
  for (const T a : values)
    for (const T b : values) {
      CHECK(same_bits(dist::max(a, b), dist::max(b, a)));
      CHECK(same_bits(dist::min(a, b), dist::min(b, a)));
      const bool has_nan = std::isnan(static_cast<double>(a)) || std::isnan(static_cast<double>(b));
      CHECK(same_bits(dist::max(a, b), nan) == has_nan);
      CHECK(same_bits(dist::min(a, b), nan) == has_nan);
      if (has_nan) continue;
      CHECK(dist::max(a, b) == std::max(a, b));
      CHECK(dist::min(a, b) == std::min(a, b));
    }
  CHECK(same_bits(dist::max(T(0.0F), T(-0.0F)), T(0.0F)));
  CHECK(same_bits(dist::min(T(0.0F), T(-0.0F)), T(-0.0F)));
  CHECK(same_bits(dist::max(dist::Max::identity<T>, -nan), nan));
  static_assert(dist::max(1.0F, 2.0F) == 2 && dist::min(-0.5, 2.0) == -0.5);
}

TEST_CASE_TEMPLATE("mean divides once, by the number of values", T, DIST_TEST_FLOATS) {
  const T total = dist::mean(dist::mean(T{1}, T{2}), T{6});
  CHECK(total == T{9});
  CHECK(dist::Mean::finish(total, 3) == T{3});
  CHECK(dist::Mean::finish(T{1}, 4) == T(0.25));
}

TEST_CASE("a mean of more values than the largest 16-bit number is finite") {
  CHECK(dist::Mean::finish(dist::Float16{65504}, 131008) == 0.5F);
  CHECK(dist::Mean::finish(dist::BFloat16{1e9F}, 1'000'000'000) == dist::BFloat16{1});
}

TEST_CASE_TEMPLATE("bitwise operations combine integers bitwise (spec H01)", T, DIST_TEST_INTEGERS) {
  const T six{6};
  const T twelve{12};
  CHECK(dist::bit_and(six, twelve) == T{4});
  CHECK(dist::bit_or(six, twelve) == T{14});
  CHECK(dist::bit_xor(six, twelve) == T{10});
  CHECK(dist::BitXor::finish(twelve, 3) == twelve);
  static_assert(std::is_same_v<decltype(dist::bit_and(six, twelve)), T>);
  static_assert(ReduceOp<dist::BitAnd, T> && ReduceOp<dist::BitOr, T> && ReduceOp<dist::BitXor, T>);
  using Limits = std::numeric_limits<T>;
  for (const T value : {Limits::lowest(), Limits::max(), T{0}, T{1}, T{85}}) {
    CHECK(dist::bit_and(dist::BitAnd::identity<T>, value) == value);
    CHECK(dist::bit_or(dist::BitOr::identity<T>, value) == value);
    CHECK(dist::bit_xor(dist::BitXor::identity<T>, value) == value);
  }
}

TEST_CASE("for bool, bitwise operations are logical, min is and, max is or, and sums are rejected (spec H01)") {
  for (const bool a : {false, true}) {
    CHECK(dist::bit_and(dist::BitAnd::identity<bool>, a) == a);
    CHECK(dist::bit_or(dist::BitOr::identity<bool>, a) == a);
    CHECK(dist::bit_xor(dist::BitXor::identity<bool>, a) == a);
    CHECK(dist::min(dist::Min::identity<bool>, a) == a);
    CHECK(dist::max(dist::Max::identity<bool>, a) == a);
    for (const bool b : {false, true}) {
      CHECK(dist::bit_and(a, b) == (a && b));
      CHECK(dist::bit_or(a, b) == (a || b));
      CHECK(dist::bit_xor(a, b) == (a != b));
      CHECK(dist::min(a, b) == (a && b));
      CHECK(dist::max(a, b) == (a || b));
    }
  }
  static_assert(ReduceOp<dist::BitAnd, bool> && ReduceOp<dist::BitOr, bool> && ReduceOp<dist::BitXor, bool>);
  static_assert(ReduceOp<dist::Min, bool> && ReduceOp<dist::Max, bool>);
  static_assert(!ReduceOp<dist::Sum, bool> && !ReduceOp<dist::Prod, bool>);
}

TEST_CASE_TEMPLATE("floating-point numbers have no bitwise reductions", T, DIST_TEST_FLOATS) {
  static_assert(!ReduceOp<dist::BitAnd, T> && !ReduceOp<dist::BitOr, T> && !ReduceOp<dist::BitXor, T>);
  CHECK(ReduceOp<dist::Sum, T>);
}

TEST_CASE("16-bit floating-point types are combined as floats, all others as themselves") {
  static_assert(std::is_same_v<dist::Accumulator<dist::Float16>, float>);
  static_assert(std::is_same_v<dist::Accumulator<dist::BFloat16>, float>);
  static_assert(std::is_same_v<dist::Accumulator<float>, float> && std::is_same_v<dist::Accumulator<double>, double>);
  CHECK(std::is_same_v<dist::Accumulator<std::int8_t>, std::int8_t>);
}

TEST_CASE("finish of the other operations returns its argument") {
  CHECK(dist::Sum::finish(9, 3) == 9);
  CHECK(dist::Min::finish(9, 3) == 9);
  CHECK(dist::Max::finish(9, 3) == 9);
  CHECK(dist::Prod::finish(9.5, 3) == 9.5);
}

TEST_CASE("operations fold at compile time") {
  static_assert(dist::sum(dist::sum(1, 2), 3) == 6);
  static_assert(dist::prod(dist::prod(2, 3), 4) == 24);
  static_assert(dist::Mean::finish(dist::mean(1.0, 2.0), 2) == 1.5);
  CHECK(dist::max(dist::max(-3, -1), -2) == -1);
}

TEST_CASE("an integer mean is rejected, because it would round (spec G04)") {
  static_assert(ReduceOp<dist::Mean, float> && ReduceOp<dist::Mean, double>);
  static_assert(ReduceOp<dist::Mean, dist::Float16> && ReduceOp<dist::Mean, dist::BFloat16>);
  static_assert(!ReduceOp<dist::Mean, int> && !ReduceOp<dist::Mean, std::uint8_t> && !ReduceOp<dist::Mean, bool>);
  CHECK(ReduceOp<dist::Sum, int>);
}

namespace {

struct Anything {
  static constexpr const char* name = "anything";
  template <class T>
  static constexpr T identity = T{};
  template <class T>
  constexpr T operator()(T a, T) const {
    return a;
  }
  template <class T>
  static constexpr T finish(T combined, std::size_t) {
    return combined;
  }
};

struct WithState : Anything {
  int state = 0;
};

struct WithoutFinish {
  static constexpr const char* name = "without finish";
  template <class T>
  static constexpr T identity = T{};
  template <class T>
  constexpr T operator()(T a, T) const {
    return a;
  }
};

/// Combines a 16-bit type, but not its accumulator.
struct NotItsAccumulator : Anything {
  template <class T>
    requires(!std::is_same_v<T, float>)
  constexpr T operator()(T a, T) const { return a; }
};

struct OtherResult : Anything {
  template <class T>
  constexpr double operator()(T, T) const {
    return 0;
  }
};

struct WithoutIdentity {
  static constexpr const char* name = "without identity";
  template <class T>
  constexpr T operator()(T a, T) const {
    return a;
  }
  template <class T>
  static constexpr T finish(T combined, std::size_t) {
    return combined;
  }
};

struct WithoutName {
  template <class T>
  [[maybe_unused]] static constexpr T identity = T{};
  template <class T>
  constexpr T operator()(T a, T) const {
    return a;
  }
  template <class T>
  static constexpr T finish(T combined, std::size_t) {
    return combined;
  }
};

}  // namespace

TEST_CASE("ReduceOp accepts exactly the operations with all parts") {
  static_assert(ReduceOp<Anything, float>);
  static_assert(!ReduceOp<WithState, float>);
  static_assert(!ReduceOp<WithoutFinish, float>);
  static_assert(!ReduceOp<WithoutIdentity, float>);
  static_assert(!ReduceOp<WithoutName, float>);
  static_assert(!ReduceOp<OtherResult, float>);
  static_assert(!ReduceOp<dist::Sum, std::string>);
  static_assert(ReduceOp<NotItsAccumulator, double> && !ReduceOp<NotItsAccumulator, dist::Float16>);
  static_assert(dist::Floating<float> && dist::Floating<double> && dist::Floating<dist::Float16>);
  static_assert(dist::Floating<dist::BFloat16> && !dist::Floating<int> && !dist::Floating<long double>);
  static_assert(dist::Reducible<dist::Float16> && dist::Reducible<dist::BFloat16>);
  static_assert(dist::Reducible<float> && dist::Reducible<bool> && !dist::Reducible<int*>);
  CHECK(ReduceOp<OtherResult, double>);
}

TEST_CASE("operations have names for messages") {
  CHECK(dist::Sum::name == "sum");
  CHECK(dist::Mean::name == "mean");
  CHECK(dist::Min::name == "min");
  CHECK(dist::Max::name == "max");
  CHECK(dist::Prod::name == "prod");
  CHECK(dist::BitAnd::name == "bit_and");
  CHECK(dist::BitOr::name == "bit_or");
  CHECK(dist::BitXor::name == "bit_xor");
}

TEST_CASE("a custom operation is an empty type with the same parts (spec H01)") {
  const LargestMagnitude largest;
  static_assert(ReduceOp<LargestMagnitude, float> && ReduceOp<LargestMagnitude, dist::Float16>);
  static_assert(largest(largest(2, -7), 5) == -7);
  CHECK(largest(LargestMagnitude::identity<double>, -0.5) == -0.5);
  const LogSumExp log_sum_exp;
  static_assert(ReduceOp<LogSumExp, double> && !ReduceOp<LogSumExp, int>);
  CHECK(log_sum_exp(std::log(2.0), std::log(3.0)) == doctest::Approx(std::log(5.0)));
  CHECK(log_sum_exp(LogSumExp::identity<double>, 1.5) == 1.5);
}

TEST_CASE("a custom operation works in a strategy's all_reduce (spec H01)") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{4};
  // A few values are sent with the announcement, more values are not.
  for (const std::size_t count : {std::size_t{2}, std::size_t{1000}}) {
    const auto results = strategy.run([&](auto& replica) {
      const auto rank = static_cast<int>(replica.local_index());
      std::vector<float> logs(count, std::log(static_cast<float>(rank + 1)));
      std::vector<dist::Float16> signs(count, dist::Float16{rank == 2 ? -9 : rank});
      replica.collectives().all_reduce(LogSumExp{}, std::span<float>{logs});
      replica.collectives().all_reduce(LargestMagnitude{}, std::span<dist::Float16>{signs});
      std::size_t wrong = 0;
      for (const float value : logs) wrong += value != doctest::Approx(std::log(10.0F));
      for (const dist::Float16 value : signs) wrong += value != -9;
      return wrong;
    });
    for (const std::size_t wrong : results) CHECK(wrong == 0);
  }
  const auto one = strategy.run([&](auto& replica) {
    const auto rank = static_cast<int>(replica.local_index());
    return replica.all_reduce(LargestMagnitude{}, rank % 2 == 0 ? rank : -rank);
  });
  for (const int value : one) CHECK(value == -3);
}

TEST_CASE("integers wrap around, even if computed in a wider type") {
  CHECK(dist::sum(std::numeric_limits<std::int32_t>::max(), std::int32_t{1}) ==
        std::numeric_limits<std::int32_t>::min());
  CHECK(dist::prod(std::uint16_t{65535}, std::uint16_t{65535}) == 1);
  CHECK(dist::prod(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(dist::sum(std::int8_t{127}, std::int8_t{1}) == -128);
}

TEST_CASE("a function and its identity form an operation (spec H01)") {
  const auto product = dist::reduction(std::multiplies<>{}, 1);
  using Product = std::remove_const_t<decltype(product)>;
  CHECK(product(3, 4) == 12);
  CHECK(product(dist::Float16{3}, dist::Float16{4}) == 12);
  CHECK(product.identity_as<double>() == 1);
  CHECK(Product::finish(7, 3) == 7);
  CHECK(Product::name.find("multiplies") != std::string_view::npos);
  static_assert(ReduceOp<Product, float> && ReduceOp<Product, std::int8_t> && ReduceOp<Product, dist::Float16>);
  static_assert(ReduceOp<dist::detail::Unfinished<Product>, float>);
  const auto least = dist::reduction([](double a, double b) { return b < a ? b : a; }, 1e300);
  using Least = std::remove_const_t<decltype(least)>;
  CHECK(least.identity_as<double>() == 1e300);
  // Operations that would lose fractions or range are rejected.
  static_assert(ReduceOp<Least, double> && ReduceOp<Least, float> && !ReduceOp<Least, int>);
  using IntegerSum = decltype(dist::reduction([](int a, int b) { return a + b; }, 0));
  static_assert(ReduceOp<IntegerSum, int> && !ReduceOp<IntegerSum, float> && !ReduceOp<IntegerSum, double>);
  CHECK(ReduceOp<decltype(dist::reduction(std::logical_or<>{}, false)), bool>);
}
