#include <dist/core/type_traits.hpp>

#include <doctest/doctest.h>

namespace {

template <class T>
int refused() {
  static_assert(dist::detail::always_false<T>, "an instance does not compile");
  return 1;
}

template <bool uses, class T>
int call() {
  if constexpr (uses) {
    return refused<T>();
  } else {
    return 0;
  }
}

}  // namespace

TEST_CASE("a static_assert of always_false only fires when its template is used") {
  CHECK(call<false, int>() == 0);
  CHECK_FALSE(dist::detail::always_false<>);
  CHECK_FALSE(dist::detail::always_false<int, double>);
}
