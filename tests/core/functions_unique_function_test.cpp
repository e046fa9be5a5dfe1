#include <dist/core/functions.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <doctest/doctest.h>

TEST_CASE("a stored function is callable, and an empty one is false") {
  CHECK_FALSE(static_cast<bool>(dist::detail::UniqueFunction<int>{}));
  int calls = 0;
  const dist::detail::UniqueFunction<int> count = [&] { return ++calls; };
  REQUIRE(static_cast<bool>(count));
  CHECK(count() == 1);
  const dist::detail::UniqueFunction<int> copy = count;
  CHECK(copy() == 2);
  CHECK(calls == 2);
}

TEST_CASE("a stored function keeps its state, and converts its result") {
  auto kept = std::make_shared<std::string>("held");
  const std::weak_ptr<std::string> seen = kept;
  {
    const dist::detail::UniqueFunction<std::optional<std::string>> held = [kept] { return *kept; };
    kept.reset();
    CHECK_FALSE(seen.expired());
    CHECK(held() == "held");
  }
  CHECK(seen.expired());
}

TEST_CASE("a stored function forwards its arguments, including references") {
  const dist::detail::UniqueFunction<int, int, std::string&> append = [](int count, std::string& to) {
    to.append(static_cast<std::size_t>(count), 'x');
    return count + 1;
  };
  std::string said = "a";
  CHECK(append(3, said) == 4);
  CHECK(said == "axxx");
}
