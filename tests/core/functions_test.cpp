#include <dist/core/functions.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <utility>

using dist::detail::FunctionRef;

namespace {

std::size_t twice(FunctionRef<std::size_t(std::size_t)> function) { return function(function(3)); }

}  // namespace

TEST_CASE("a function reference calls the original, not a copy") {
  std::size_t calls = 0;
  auto count = [&, own = std::size_t{0}](std::size_t value) mutable {
    ++calls;
    return value + ++own;
  };
  CHECK(twice(count) == 6);  // 3 + 1, and 2 more
  CHECK(twice(count) == 10);
  CHECK(calls == 4);
  const auto constant = [](std::size_t value) { return 10 * value; };
  CHECK(twice(constant) == 300);
  CHECK(twice([](std::size_t value) { return value; }) == 3);
}

TEST_CASE("arguments are forwarded, and results are converted") {
  const auto take = [](std::unique_ptr<int> owned, int& out) { out = *owned; };
  const FunctionRef<void(std::unique_ptr<int>, int&)> reference = take;
  int out = 0;
  reference(std::make_unique<int>(7), out);
  CHECK(out == 7);
  const auto narrow = [] { return 'a'; };
  const FunctionRef<int()> wide = narrow;
  CHECK(wide() == 97);
}
