#include <dist/context/structure.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

using dist::PerReplica;

namespace {

struct Two {
  float loss;
  std::array<int, 3> counts;
};
struct One {
  std::string text;
};
struct WithConstructor {
  explicit WithConstructor(int) {}
};

struct Base {};
struct Derived : Base {
  int number;
};
struct Nine {
  int a, b, c, d, e, f, g, h, i;
};
static_assert(!dist::Aggregate<Derived> && !dist::Aggregate<Nine>);
static_assert(dist::Structure<std::tuple<int>> && dist::Structure<std::pair<int, int>>);
static_assert(dist::Structure<const std::array<int, 2>> && dist::Structure<std::optional<int>>);
static_assert(!dist::Structure<std::vector<int>> && !dist::Structure<Two> && !dist::Structure<PerReplica<int>>);
static_assert(dist::Aggregate<Two> && dist::Aggregate<One>);
static_assert(!dist::Aggregate<WithConstructor> && !dist::Aggregate<int> && !dist::Aggregate<std::vector<int>>);
static_assert(!dist::Aggregate<std::array<int, 2>>);

}  // namespace

TEST_CASE("the members of an aggregate can be visited, arrays as one member") {
  Two two{1.5f, {1, 2, 3}};
  auto members = dist::members_of(two);
  static_assert(std::is_same_v<decltype(members), std::tuple<float&, std::array<int, 3>&>>);
  std::get<0>(members) = 2.5f;
  CHECK(two.loss == 2.5f);
  const One one{"x"};
  static_assert(std::is_same_v<decltype(dist::members_of(one)), std::tuple<const std::string&>>);
}

TEST_CASE("map_structure preserves the form") {
  std::tuple numbers{1, 2.5};
  const auto doubled = dist::map_structure(numbers, [](auto& x) { return x + x; });
  CHECK(doubled == std::tuple{2, 5.0});
  static_assert(std::is_same_v<decltype(dist::map_structure(
                                   numbers, [](auto& x) -> auto& { return x; })),
                               std::tuple<int&, double&>>);
  const std::pair<int, float> pair{1, 0.5f};
  const std::pair twice = dist::map_structure(pair, [](auto x) { return x + x; });
  CHECK(twice == std::pair{2, 1.0f});
  const std::array three{1, 2, 3};
  CHECK(dist::map_structure(three, [](int x) { return 0.5 * x; }) == std::array{0.5, 1.0, 1.5});
  std::optional<int> nothing;
  CHECK(!dist::map_structure(nothing, [](int x) { return x; }));
  CHECK(dist::map_structure(std::as_const(three), [](int x) { return x; })[2] == 3);
}

TEST_CASE("per-replica structures become structures of per-replica values, moved, not copied (spec C03, F05)") {
  using Inside = std::pair<std::unique_ptr<int>, std::array<double, 2>>;
  using Each = std::tuple<int, Inside>;
  PerReplica<Each> values(3, [](std::size_t r) {
    const int number = static_cast<int>(r);
    return Each{number, Inside{std::make_unique<int>(10 * number), std::array{1.0 * number, 2.0}}};
  });
  const auto regrouped = dist::regroup(std::move(values));
  static_assert(
      std::is_same_v<decltype(regrouped),
                     const std::tuple<PerReplica<int>,
                                      std::pair<PerReplica<std::unique_ptr<int>>, std::array<PerReplica<double>, 2>>>>);
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(std::get<0>(regrouped)[r] == static_cast<int>(r));
    CHECK(*std::get<0>(std::get<1>(regrouped))[r] == 10 * static_cast<int>(r));
    CHECK(std::get<1>(std::get<1>(regrouped))[0][r] == static_cast<double>(r));
  }
  static_assert(std::is_same_v<decltype(dist::regroup(PerReplica<std::vector<int>>(2))), PerReplica<std::vector<int>>>);
}

TEST_CASE("an optional must have a value on all replicas or on none (spec C03)") {
  const auto of = [](std::optional<int> first, std::optional<int> second) {
    return PerReplica<std::optional<int>>(2, [&](std::size_t r) { return r == 0 ? first : second; });
  };
  const auto both = dist::regroup(of(3, 4));
  REQUIRE(both.has_value());
  CHECK((*both)[1] == 4);
  CHECK(!dist::regroup(of({}, {})).has_value());
  CHECK_THROWS_WITH_AS(
      dist::regroup(of({}, 4)),
      "The replicas' results differ in structure (replica 1 returned an optional with a value, replica 0 one "
      "without). Return a value on every replica or on none.",
      dist::ShapeMismatch);
  CHECK_THROWS_AS(dist::regroup(of(3, {})), dist::ShapeMismatch);
}

TEST_CASE("for_each_member visits every member, and an optional's value if it has one") {
  const auto sum_of = [](const auto& structure) {
    double sum = 0;
    dist::for_each_member(structure, [&](const auto& member) { sum += static_cast<double>(member); });
    return sum;
  };
  CHECK(sum_of(std::tuple{1, 2.5}) == 3.5);
  CHECK(sum_of(std::array{1, 2}) == 3);
  CHECK(sum_of(std::optional{4}) == 4);
  CHECK(sum_of(std::optional<int>{}) == 0);
  struct Both {
    int one;
    float other;
  };
  Both both{1, 2};
  dist::for_each_member(both, [](auto& member) { member *= 2; });
  CHECK(sum_of(both) == 6);
}
