#include <dist/core/reduce_op.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

using dist::ReduceOp;

#define DIST_TEST_INTEGERS \
  std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t

TEST_CASE_TEMPLATE("operations combine numbers of every type", T, float, double, DIST_TEST_INTEGERS) {
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

TEST_CASE_TEMPLATE("an identity changes no value, not even the extremes", T, float, double, DIST_TEST_INTEGERS) {
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

TEST_CASE_TEMPLATE("identities keep infinities", T, float, double) {
  const T infinity = std::numeric_limits<T>::infinity();
  CHECK(dist::min(dist::Min::identity<T>, infinity) == infinity);
  CHECK(dist::max(dist::Max::identity<T>, -infinity) == -infinity);
  CHECK(dist::mean(dist::Mean::identity<T>, infinity) == infinity);
}

TEST_CASE_TEMPLATE("mean divides once, by the number of values", T, float, double) {
  const T total = dist::mean(dist::mean(T{1}, T{2}), T{6});
  CHECK(total == T{9});
  CHECK(dist::Mean::finish(total, 3) == T{3});
  CHECK(dist::Mean::finish(T{1}, 4) == T(0.25));
}

TEST_CASE("the other operations finish with what they combined") {
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

TEST_CASE("an integer mean is refused, as it would round (spec G04)") {
  static_assert(ReduceOp<dist::Mean, float> && ReduceOp<dist::Mean, double>);
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

TEST_CASE("ReduceOp takes any operation with all parts, and none that lacks one") {
  static_assert(ReduceOp<Anything, float>);
  static_assert(!ReduceOp<WithState, float>);
  static_assert(!ReduceOp<WithoutFinish, float>);
  static_assert(!ReduceOp<WithoutIdentity, float>);
  static_assert(!ReduceOp<WithoutName, float>);
  static_assert(!ReduceOp<OtherResult, float>);
  static_assert(!ReduceOp<dist::Sum, std::string>);
  static_assert(dist::Reducible<float> && dist::Reducible<bool> && !dist::Reducible<int*>);
  CHECK(ReduceOp<OtherResult, double>);
}

TEST_CASE("operations are named for messages") {
  CHECK(dist::Sum::name == "sum");
  CHECK(dist::Mean::name == "mean");
  CHECK(dist::Min::name == "min");
  CHECK(dist::Max::name == "max");
  CHECK(dist::Prod::name == "prod");
}
