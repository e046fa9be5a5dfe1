#include <string>

#include <dist/core/type_traits.hpp>

#include <doctest/doctest.h>

namespace {

struct Context {};

template <class Fn, class... Rest>
constexpr bool takes(const Fn&, const Rest&...) {
  return dist::detail::is_callable<Fn, Context&, Rest...>();
}

TEST_CASE("lambdas are matched by their parameters") {
  CHECK(takes([](Context&, int) {}, 1));
  CHECK_FALSE(takes([](Context&) {}, 1));
  CHECK_FALSE(takes([](Context&, int) {}));
  CHECK(takes([](auto&, int) {}, 1));
  CHECK(takes([](const auto&, int) {}, 1));
  CHECK(takes([](auto&&, auto&&...) {}, 1, 2.0f, "three"));
  CHECK(takes([](auto, auto) {}, 1));
  CHECK(takes([](Context&, auto) {}, 1));
  CHECK(takes([](auto&, auto) mutable {}, 1));
  CHECK_FALSE(takes([](auto&) {}, 1));
  CHECK_FALSE(takes([](auto&) mutable {}, 1));
  CHECK_FALSE(takes([](auto&, int) {}, "text"));
  CHECK_FALSE(takes([](auto&, auto*) {}, 1));
  CHECK_FALSE(takes([](Context&&, auto) {}, 1));
}

struct Overloaded {
  void operator()(Context&, int) const {}
  void operator()(Context&, const char*) {}
};
struct Final final {
  void operator()(auto&, int) const {}
};
struct OfAnything {
  template <class T>
  OfAnything(const T&) {}
};
void function(Context&, int) {}

TEST_CASE("other callables are matched by their parameters") {
  CHECK(takes(Overloaded{}, 1));
  CHECK_FALSE(takes(Overloaded{}));
  CHECK(dist::detail::is_callable<Overloaded, Context&, const char*>());
  CHECK_FALSE(dist::detail::is_callable<const Overloaded, Context&, const char*>());
  CHECK(takes(Final{}, 1));
  CHECK_FALSE(takes(Final{}, "text"));
  CHECK(takes(&function, 1));
  CHECK_FALSE(takes(&function));
  CHECK_FALSE(takes(1, 1));
  CHECK_FALSE(dist::detail::is_function_of<std::string, Context&, int>());
  CHECK(dist::detail::is_function_of<Overloaded, Context&, int>());
  CHECK(dist::detail::is_function_of<decltype(&function), Context&, int>());
  CHECK(takes([](OfAnything, auto) {}, 1));
  CHECK(takes([](auto&, OfAnything) {}, 1));
}

TEST_CASE("the body of a generic lambda is not instantiated") {
  const auto broken = [](auto& context, auto) { return context.no_such_member(); };
  CHECK(dist::detail::is_callable<decltype(broken), Context&, int>());
  CHECK_FALSE(dist::detail::is_callable<decltype(broken), Context&>());
}

}  // namespace
