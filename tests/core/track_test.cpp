#include <dist/core/track.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>

#include <doctest/doctest.h>

namespace {

struct Inner {
  int first = 1;
  double second = 2.5;
  void track(auto& visit) {
    visit("first", first);
    visit("second", second);
  }
};
struct Outer {
  Inner left;
  Inner right;
  int count = 7;
  void track(auto& visit) {
    visit("left", left);
    visit("count", count);
    visit("right", right);
  }
};
struct Twice {
  Inner inner;
  int other = 0;
  void track(auto& visit) {
    visit("inner", inner);
    visit("inner/first", other);
  }
};
struct Untracked {};

}  // namespace

TEST_CASE("a type that names its parts is Trackable") {
  static_assert(dist::Trackable<Inner> && dist::Trackable<Outer&>);
  static_assert(!dist::Trackable<Untracked> && !dist::Trackable<int>);
}

TEST_CASE("a walk visits every leaf once, in order, with its path") {
  Outer outer;
  std::vector<std::pair<std::string, double>> seen;
  dist::walk(outer, [&](std::string_view key, const auto& leaf) { seen.emplace_back(key, static_cast<double>(leaf)); });
  CHECK(seen == std::vector<std::pair<std::string, double>>{
                    {"left/first", 1}, {"left/second", 2.5}, {"count", 7}, {"right/first", 1}, {"right/second", 2.5}});
}

TEST_CASE("a walk can change leaves") {
  Outer outer;
  dist::walk(outer, [](std::string_view key, auto& leaf) {
    if (key == "right/first") leaf = 40;
  });
  CHECK(outer.right.first == 40);
  CHECK(outer.left.first == 1);
}

TEST_CASE("two leaves with the same key are rejected by name") {
  Twice twice;
  CHECK_THROWS_WITH_AS(
      dist::walk(twice, [](std::string_view, const auto&) {}),
      "Two tracked parts are named 'inner/first' (one would replace the other). Give one of them another name.",
      dist::InvalidArgument);
}

namespace {
struct Later {
  static constexpr bool may_be_absent = true;
  int value = 0;
  void track(auto& visit) { visit("value", value); }
};
struct WithLater {
  Later later;
  int after = 0;
  void track(auto& visit) {
    visit("later", later);
    visit("after", after);
  }
};
}  // namespace

TEST_CASE("a walk reports which leaves a checkpoint may lack") {
  WithLater tracked;
  std::string seen;
  dist::walk(tracked, [&](std::string_view key, auto&, bool is_optional) {
    seen += std::string{key} + (is_optional ? "? " : " ");
  });
  CHECK(seen == "later/value? after ");
}
